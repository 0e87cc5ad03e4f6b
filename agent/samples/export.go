package samples

import (
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Exporter writes selected samples as JSON for capture, replay tools and
// telemetry, and reads them back. Writing one publishes it nowhere.
type Exporter struct {
	names map[reflect.Type]string
	read  map[string]func(data []byte, sequence uint64, at int64) (any, error)
}

// Export registers a type of sample under a name. A name or type that is taken
// is refused.
func Export[T Sample](x *Exporter, name string) error {
	key := reflect.TypeFor[T]()
	if _, taken := x.names[key]; taken || x.read[name] != nil || name == "" {
		return fault.New(fault.Conflict, "%s cannot be exported as %q; type and name are registered once, and a name is not empty", key, name)
	}
	if x.names == nil {
		x.names, x.read = map[reflect.Type]string{}, map[string]func([]byte, uint64, int64) (any, error){}
	}
	x.names[key] = name
	x.read[name] = func(data []byte, sequence uint64, at int64) (any, error) {
		s := Stamped[T]{Sequence: sequence, Time: at}
		err := json.Unmarshal(data, &s.Value)
		return s, err
	}
	return nil
}

// Append writes a sample of a registered type: {"version":"1.0","type":…} and
// its members.
func Append[T Sample](x *Exporter, dst []byte, s Stamped[T]) ([]byte, error) {
	name, ok := x.names[reflect.TypeFor[T]()]
	if !ok {
		return dst, fault.New(fault.NotFound, "%T is not registered for export; register it first", s.Value)
	}
	value, err := json.Marshal(s.Value, json.Deterministic(true))
	if err != nil || len(value) < 2 || value[0] != '{' {
		return dst, fault.New(fault.Invalid, "%T does not write as an object: %v", s.Value, err)
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return dst, fault.New(fault.Invalid, "%q is not a name: %v", name, err)
	}
	dst = append(append(dst, `{"version":"1.0","type":`...), quoted...)
	if s.Sequence != 0 {
		dst = strconv.AppendUint(append(dst, `,"sequenceNumber":`...), s.Sequence, 10)
	}
	if s.Time != 0 {
		dst = strconv.AppendInt(append(dst, `,"timestampNs":`...), s.Time, 10)
	}
	if len(value) > 2 {
		dst = append(append(dst, ','), value[1:len(value)-1]...)
	}
	return append(dst, '}'), nil
}

// maxDepth bounds the nesting of what is read.
const maxDepth = 64

// Read reads an exported sample as a Stamped of its type. For a type that is
// not registered it returns nil and no error.
func (x *Exporter) Read(data []byte) (any, error) {
	if jsonscan.Deeper(data, maxDepth) {
		return nil, fault.New(fault.Invalid, "the sample is nested more than %d deep", maxDepth)
	}
	var head struct {
		Type     string `json:"type"`
		Sequence uint64 `json:"sequenceNumber"`
		Time     int64  `json:"timestampNs"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "not an exported sample: %v", err)
	}
	read := x.read[head.Type]
	if read == nil {
		return nil, nil
	}
	s, err := read(data, head.Sequence, head.Time)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s cannot be read: %v", head.Type, err)
	}
	return s, nil
}
