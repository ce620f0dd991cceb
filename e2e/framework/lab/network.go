// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxNetworks is how many full labs can be on one host: the third byte of their networks' addresses.
const maxNetworks = 100

// firstMachine is the last byte of the first machine's addresses; the host has 1.
const firstMachine = 10

// network joins the machines of a lab: a bridge in a network namespace of its own, to which each machine and the host
// are linked. From the host the machines can be reached, and nothing of the host but itself from them. The interface on
// the host disappears with the namespace, which ends with its process.
//
// Its addresses are from the range for benchmarks (RFC 2544) and from a unique local one: neither is likely to be
// routed on the host.
type network struct {
	number int
	wan    *Process
}

// wanScript is the process that holds the namespace of the bridge. Argument: a file to write when it is ready.
const wanScript = `
set -eu
ip link set lo up
ip link add wan type bridge forward_delay 0 mcast_snooping 0
ip link set wan up
echo >"$1"
while :; do sleep 3600 & wait $!; done
`

// startNetwork takes the first number that no other lab of this host has: to make the interface claims it.
func (l *Lab) startNetwork(ctx context.Context) error {
	folder := filepath.Join(l.folder, wanFolder)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return fmt.Errorf("lab: its network: %w", err)
	}
	ready := filepath.Join(folder, "ready")
	n := &network{wan: &Process{
		name:    "the network of the lab",
		argv:    []string{"unshare", "--net", "--fork", "--kill-child", "/bin/sh", "-c", wanScript, "wan", ready},
		folder:  folder,
		pidFile: filepath.Join(folder, "wan.pid"),
		logFile: filepath.Join(folder, "wan.log"),
		ready:   exists(ready),
	}}
	l.network = n
	if err := n.wan.Start(ctx); err != nil {
		return err
	}
	pid := strconv.Itoa(n.wan.PID())
	var err error
	for n.number = range maxNetworks {
		// The peer is made in the other namespace at once: there is never a second interface to clean up.
		_, err = execute(ctx, "ip", "link", "add", n.hostLink(), "type", "veth", "peer", "name", "host", "netns", pid)
		if err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lab: no network is free for it: %w", err)
	}
	for _, command := range [][]string{
		{"nsenter", "--target", pid, "--net", "ip", "link", "set", "host", "master", "wan", "up"},
		{"ip", "address", "add", n.address4(1).String() + "/24", "dev", n.hostLink()},
		{"ip", "address", "add", n.address6(1).String() + "/64", "dev", n.hostLink(), "nodad"},
		{"ip", "link", "set", n.hostLink(), "up"},
	} {
		if _, err := execute(ctx, command...); err != nil {
			return fmt.Errorf("lab: its network: %w", err)
		}
	}
	return nil
}

// wanFolder lies beside the clusters' folders; no cluster can have the name, which is no DNS label.
const wanFolder = "_wan"

func (n *network) hostLink() string { return "tombolo" + strconv.Itoa(n.number) }

// addresses returns those of the machine of the cluster with this index: IPv4 and IPv6.
func (n *network) addresses(index int) []netip.Addr {
	return []netip.Addr{n.address4(firstMachine + index), n.address6(firstMachine + index)}
}

func (n *network) address4(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, byte(n.number), byte(host)})
}

func (n *network) address6(host int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("fd00:18:%d::%d", n.number, host))
}

// connect links the machine of the cluster with this index to the network. Its interface is eth0.
func (n *network) connect(ctx context.Context, index int, m *machine) error {
	inWAN, port := []string{"nsenter", "--target", strconv.Itoa(n.wan.PID()), "--net", "ip", "link"}, portName(index)
	for _, command := range [][]string{
		append(inWAN, "add", port, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(m.init.PID())),
		append(inWAN, "set", port, "master", "wan", "up"),
		m.enter("ip", "link", "set", "eth0", "up"),
	} {
		if _, err := execute(ctx, command...); err != nil {
			return fmt.Errorf("linking a machine to the network: %w", err)
		}
	}
	for i, address := range m.addresses {
		family := families[i]
		for _, command := range [][]string{
			append([]string{"ip", "address", "add", address.String() + family.length, "dev", "eth0"}, family.flags...),
			// No interface has the addresses of Services, and yet they must have a route to be translated on it.
			{"ip", family.option, "route", "add", "default", "dev", "eth0"},
		} {
			if _, err := m.run(ctx, command...); err != nil {
				return fmt.Errorf("linking a machine to the network: %w", err)
			}
		}
	}
	return nil
}

// families are what commands need to know of IPv4 and IPv6, in the order of a machine's addresses.
var families = []struct {
	option, length string
	flags          []string
	nft            string
	everywhere     string
}{
	{option: "-4", length: "/24", nft: "ip", everywhere: "0.0.0.0/0"},
	{option: "-6", length: "/64", flags: []string{"nodad"}, nft: "ip6", everywhere: "::/0"},
}

// route makes the pods of another cluster reachable from a machine: this is the flat network.
func (n *network) route(ctx context.Context, m *machine, to *Cluster) error {
	for i, cidr := range to.PodCIDRs() {
		if i == len(m.addresses) { // the machine has no IPv6
			break
		}
		if _, err := m.run(ctx, "ip", "route", "replace", cidr.String(), "via", to.machine.addresses[i].String()); err != nil {
			return fmt.Errorf("routing to the pods of cluster %s: %w", to.Name, err)
		}
	}
	return nil
}

// masquerade gives packets of a cluster's pods the address of its machine if they leave for other machines, as the nodes of a cluster
// do whose pods the network does not route to.
func (n *network) masquerade(ctx context.Context, c *Cluster) error {
	rules := []string{"table inet lab {", "chain postrouting {", "type nat hook postrouting priority srcnat + 1;"}
	for i, pods := range c.PodCIDRs() {
		machines, family := []netip.Addr{n.address4(0), n.address6(0)}[i], families[i]
		rules = append(rules, fmt.Sprintf("oifname eth0 %s saddr %s %s daddr %s%s masquerade", family.nft, pods, family.nft, machines, family.length))
	}
	if _, err := c.machine.run(ctx, "nft", strings.Join(append(rules, "}", "}"), "\n")); err != nil {
		return fmt.Errorf("masquerading the pods: %w", err)
	}
	return nil
}

// plug puts a machine back on the network, with "master", "wan", or takes it off, with "nomaster": whatever it sends and whatever is
// sent to it is lost without a word then.
func (n *network) plug(ctx context.Context, index int, how ...string) error {
	set := []string{"nsenter", "--target", strconv.Itoa(n.wan.PID()), "--net", "ip", "link", "set", portName(index)}
	_, err := execute(ctx, append(set, how...)...)
	return err
}

func portName(index int) string { return "port" + strconv.Itoa(index) }
