// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ProtocolTCP is the only protocol of version 1 (its number is IANA's).
const ProtocolTCP = 6

// critical is the bit of a field's number that says that a receiver must refuse the stream if it does not know the field.
const critical = 0x80

// The fields of OPEN. All are sent in this order, empty ones are left out.
const (
	fieldProtocol        = 1 | critical
	fieldNamespace       = 2 | critical
	fieldService         = 3 | critical
	fieldPort            = 4 | critical
	fieldHostname        = 5 | critical
	fieldClient          = 6
	fieldClientNamespace = 7
	fieldServiceAccount  = 8
	fieldClientPort      = 9
	fieldUnidentified    = 10
)

// Open is the payload of OPEN: the backend that a stream leads to, and its client.
type Open struct {
	Protocol           uint8
	Namespace, Service string
	// Port is the number of the Service port.
	Port uint16
	// Hostname is empty unless the service is headless.
	Hostname string
	// Client is the address of the client, which the importing gateway states.
	Client netip.Addr
	// ClientPort is the port of the client; 0 if the importing gateway does not state it.
	ClientPort uint16
	// ClientNamespace and ServiceAccount are empty if the client is unknown.
	ClientNamespace, ServiceAccount string
	// Unidentified is set if the importing gateway has not waited until it knows who the client is: the stream must be refused with
	// CodeUnidentified if a rule depends on that.
	Unidentified bool
	// Skipped are the fields that this version does not know and that are not critical, encoded.
	Skipped []byte
}

// Encode returns the payload.
func (o Open) Encode() []byte {
	b := appendField(nil, fieldProtocol, []byte{o.Protocol})
	b = appendField(b, fieldNamespace, []byte(o.Namespace))
	b = appendField(b, fieldService, []byte(o.Service))
	b = appendField(b, fieldPort, binary.BigEndian.AppendUint16(nil, o.Port))
	b = appendField(b, fieldHostname, []byte(o.Hostname))
	b = appendField(b, fieldClient, o.Client.Unmap().AsSlice())
	b = appendField(b, fieldClientNamespace, []byte(o.ClientNamespace))
	b = appendField(b, fieldServiceAccount, []byte(o.ServiceAccount))
	if o.ClientPort != 0 {
		b = appendField(b, fieldClientPort, binary.BigEndian.AppendUint16(nil, o.ClientPort))
	}
	if o.Unidentified {
		b = appendField(b, fieldUnidentified, []byte{1})
	}
	return append(b, o.Skipped...)
}

func appendField(b []byte, field byte, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint16(append(b, field), uint16(len(value)))
	return append(b, value...)
}

// DecodeOpen decodes the payload of OPEN. The error is a *Refusal: a malformed OPEN ends the stream, and by that the connection.
func DecodeOpen(b []byte) (Open, error) {
	var o Open
	last := byte(0)
	for rest := b; len(rest) > 0; {
		if len(rest) < 3 {
			return Open{}, malformed("a field is cut off")
		}
		field, length := rest[0], int(binary.BigEndian.Uint16(rest[1:]))
		if length == 0 || length > len(rest)-3 {
			return Open{}, malformed("a field is empty or cut off")
		}
		if number := field &^ critical; number <= last {
			return Open{}, malformed("fields are not in ascending order")
		}
		last = field &^ critical
		if last > fieldUnidentified && field&critical == 0 {
			o.Skipped = append(o.Skipped, rest[:3+length]...)
		} else if !o.set(field, rest[3:3+length]) {
			return Open{}, malformed("a field is unknown or not valid")
		}
		rest = rest[3+length:]
	}
	if o.Protocol == 0 || o.Namespace == "" || o.Service == "" || o.Port == 0 || !o.Client.IsValid() {
		return Open{}, malformed("a field is missing")
	}
	return o, nil
}

func malformed(text string) error { return &Refusal{Code: CodeMalformedOpen, Text: text} }

// set stores a field, and reports whether it is known and valid.
func (o *Open) set(field byte, value []byte) bool {
	switch field {
	case fieldProtocol:
		o.Protocol = value[0]
		return len(value) == 1 && value[0] == ProtocolTCP
	case fieldNamespace:
		o.Namespace = string(value)
		return isLabel(o.Namespace)
	case fieldService:
		o.Service = string(value)
		return isLabel(o.Service)
	case fieldPort:
		if len(value) != 2 {
			return false
		}
		o.Port = binary.BigEndian.Uint16(value)
		return o.Port != 0
	case fieldHostname:
		o.Hostname = string(value)
		return isLabel(o.Hostname)
	case fieldClient:
		address, ok := netip.AddrFromSlice(value)
		o.Client = address
		return ok && !address.Is4In6()
	case fieldClientNamespace:
		o.ClientNamespace = string(value)
		return isLabel(o.ClientNamespace)
	case fieldServiceAccount:
		o.ServiceAccount = string(value)
		return isSubdomain(o.ServiceAccount)
	case fieldClientPort:
		if len(value) != 2 {
			return false
		}
		o.ClientPort = binary.BigEndian.Uint16(value)
		return o.ClientPort != 0
	case fieldUnidentified:
		o.Unidentified = true
		return len(value) == 1 && value[0] == 1
	default:
		return false
	}
}

func isLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

func isSubdomain(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
