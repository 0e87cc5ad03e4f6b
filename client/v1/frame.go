package v1

import "bytes"

// add adds one line of a stream. Lines of data are joined with line breaks, as
// the format says; comments and unknown fields are ignored.
func (f *Frame) add(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		f.ID = string(value)
	case "event":
		f.Name = string(value)
	case "data":
		if f.Data != nil {
			f.Data = append(f.Data, '\n')
		}
		f.Data = append(f.Data, value...)
		if f.Data == nil {
			f.Data = []byte{}
		}
	}
}
