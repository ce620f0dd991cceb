// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab runs real Kubernetes control planes on one machine: for each cluster an etcd, a kube-apiserver and, where
// asked for, a kube-controller-manager. It needs no root, no containers and no network but the loopback interface, and
// works on Linux and macOS. There are no nodes, so pods are objects that never run; everything else (admission, RBAC,
// quotas, validation, watch, dual-stack Services) is the real thing.
//
// As root on Linux it runs complete clusters as well (CompleteMember), each on a machine of its own namespaces: with
// scheduler, kubelet, containerd, kube-proxy and pods, which reach those of other clusters. See machine.go.
//
// A test starts what it needs, and everything is gone when it ends:
//
//	l := lab.Start(t, lab.Hub(), lab.Member("a"), lab.Member("b"))
//	config := l.Cluster("a").Config()
//
// The processes of a cluster can be stopped, killed, restarted, frozen and thawed one by one. An API server keeps its
// port and etcd its data, so credentials and clients stay valid.
//
// Several labs may run at once, in one process or in many. Each has a folder of its own below the folder for temporary
// files, and a watchdog that ends the processes and removes the folder when the process that started the lab ends, in
// whatever way: see watchdog.go.
//
// The binaries come from KUBEBUILDER_ASSETS or from bin/ of this repository, where "make assets" and "make lab-assets" build them.
package lab
