package journal

import (
	"fmt"
	"net/url"
	"strings"
)

// MaxNamePart bounds each part of a log's name, in bytes. A part has at least
// one byte and may hold any.
const MaxNamePart = 255

// LogName names a log.
type LogName struct {
	Tenant, Partition, Family, ID string
}

// PartitionName names a partition: the logs and values that one batch may
// touch together.
type PartitionName struct {
	Tenant, Partition string
}

// In names a log of the partition.
func (p PartitionName) In(family, id string) LogName {
	return LogName{p.Tenant, p.Partition, family, id}
}

// Of is the partition the log is in.
func (n LogName) Of() PartitionName { return PartitionName{n.Tenant, n.Partition} }

// Validate refuses names with an empty or an overlong part.
func (n LogName) Validate() error {
	return validateParts("log name", n.Tenant, n.Partition, n.Family, n.ID)
}

// Validate refuses names with an empty or an overlong part.
func (p PartitionName) Validate() error {
	return validateParts("partition name", p.Tenant, p.Partition)
}

func validateParts(what string, parts ...string) error {
	for _, part := range parts {
		if part == "" {
			return &BoundsError{What: what + ": length of a part", Got: 0, Min: 1, Max: MaxNamePart}
		}
		if len(part) > MaxNamePart {
			return &BoundsError{What: what + ": length of a part", Got: len(part), Min: 1, Max: MaxNamePart}
		}
	}
	return nil
}

// AppendBinary appends the encoded name: each part after its length in one
// byte. A partition's encoding is a prefix of the encodings of its logs.
func (n LogName) AppendBinary(b []byte) ([]byte, error) {
	if err := n.Validate(); err != nil {
		return b, err
	}
	return appendParts(b, n.Tenant, n.Partition, n.Family, n.ID), nil
}

// AppendBinary appends the encoded name: each part after its length in one byte.
func (p PartitionName) AppendBinary(b []byte) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return b, err
	}
	return appendParts(b, p.Tenant, p.Partition), nil
}

func appendParts(b []byte, parts ...string) []byte {
	for _, part := range parts {
		b = append(b, byte(len(part)))
		b = append(b, part...)
	}
	return b
}

// CutLogName decodes a name from the front of b and returns what follows it.
func CutLogName(b []byte) (LogName, []byte, error) {
	var parts [4]string
	rest, err := cutParts(b, parts[:])
	if err != nil {
		return LogName{}, b, fmt.Errorf("log name: %w", err)
	}
	return LogName{parts[0], parts[1], parts[2], parts[3]}, rest, nil
}

// CutPartitionName decodes a name from the front of b and returns what follows
// it.
func CutPartitionName(b []byte) (PartitionName, []byte, error) {
	var parts [2]string
	rest, err := cutParts(b, parts[:])
	if err != nil {
		return PartitionName{}, b, fmt.Errorf("partition name: %w", err)
	}
	return PartitionName{parts[0], parts[1]}, rest, nil
}

func cutParts(b []byte, parts []string) ([]byte, error) {
	for i := range parts {
		if len(b) == 0 || b[0] == 0 || len(b) < 1+int(b[0]) {
			return b, fmt.Errorf("part %d of %d is cut off or empty", i+1, len(parts))
		}
		n := 1 + int(b[0])
		parts[i], b = string(b[1:n]), b[n:]
	}
	return b, nil
}

// String is the name's text form: its parts, escaped as in a URL's path, with
// slashes between.
func (n LogName) String() string { return joinParts(n.Tenant, n.Partition, n.Family, n.ID) }

// String is the name's text form: its parts, escaped as in a URL's path, with
// a slash between.
func (p PartitionName) String() string { return joinParts(p.Tenant, p.Partition) }

func joinParts(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	return strings.Join(escaped, "/")
}

// ParseLogName reads the text form.
func ParseLogName(s string) (LogName, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 {
		return LogName{}, fmt.Errorf("log name %q has %d parts, want tenant/partition/family/id", s, len(parts))
	}
	for i, part := range parts {
		unescaped, err := url.PathUnescape(part)
		if err != nil {
			return LogName{}, fmt.Errorf("log name %q: %w", s, err)
		}
		parts[i] = unescaped
	}
	n := LogName{parts[0], parts[1], parts[2], parts[3]}
	return n, n.Validate()
}
