package identity

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Codec returns the options under which records are written with instants in
// the given form and read in every form. An instant that is not set is "", and
// so is one that cannot be read: hubs overwrite them anyway.
func Codec(format func(time.Time) string) json.Options {
	return json.JoinOptions(
		json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, t time.Time) error {
			if t.IsZero() {
				return enc.WriteToken(jsontext.String(""))
			}
			return enc.WriteToken(jsontext.String(format(t)))
		})),
		json.WithUnmarshalers(json.UnmarshalFromFunc(readTime)),
	)
}

func readTime(dec *jsontext.Decoder, t *time.Time) error {
	var text string
	if err := json.UnmarshalDecode(dec, &text); err != nil {
		return err
	}
	*t, _ = envelope.ParseTime(text)
	if t.Year() < 1 || t.Year() > 9999 {
		*t = time.Time{} // could not be written again
	}
	return nil
}

var ownForm = Codec(envelope.FormatTime)

// Marshal writes a record in our own form: every key, times ending in Z.
func Marshal(record any) ([]byte, error) { return json.Marshal(record, ownForm) }

// Unmarshal reads a record in any form. Unknown keys are dropped and missing
// ones take their defaults; what names the record in a refusal.
func Unmarshal(what string, data []byte, record any) error {
	return Explain(what, json.Unmarshal(data, record, ownForm))
}

// Explain turns a decoder's error into a refusal that says where in what the
// input is wrong.
func Explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		where := what + strings.ReplaceAll(string(semantic.JSONPointer), "/", ".")
		if semantic.JSONKind == jsontext.KindNumber && (errors.Is(semantic.Err, strconv.ErrSyntax) || errors.Is(semantic.Err, strconv.ErrRange)) {
			return fault.Wrap(fault.Invalid, err, "%s must be a whole number of at most 64 bits, not %s", where, semantic.JSONValue)
		}
		if semantic.Err != nil {
			return fault.Wrap(fault.Invalid, err, "%s is refused: %v", where, semantic.Err)
		}
		return fault.Wrap(fault.Invalid, err, "%s must not be a JSON %s", where, KindName(semantic.JSONKind))
	}
	return fault.Wrap(fault.Invalid, err, "%s is not valid JSON: %v", what, err)
}

// Object is a JSON object kept exactly as given. Its zero value is {}.
type Object []byte

// MarshalJSONTo writes the object as it was given.
func (o Object) MarshalJSONTo(enc *jsontext.Encoder) error {
	if len(o) == 0 {
		return enc.WriteValue(jsontext.Value("{}"))
	}
	return enc.WriteValue(jsontext.Value(o))
}

// UnmarshalJSONFrom reads an object; null is {}.
func (o *Object) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		*o = nil
		return dec.SkipValue()
	}
	if kind := dec.PeekKind(); kind != '{' && kind != 0 {
		return errors.New("a JSON object is wanted, not a " + KindName(kind))
	}
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*o = Object(value.Clone())
	return nil
}

// Number is a JSON number kept exactly as given; its zero value is null.
type Number string

// MarshalJSONTo writes the number as it was given.
func (n Number) MarshalJSONTo(enc *jsontext.Encoder) error {
	if n == "" {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteValue(jsontext.Value(n))
}

// UnmarshalJSONFrom reads a number or null.
func (n *Number) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch kind := dec.PeekKind(); kind {
	case 'n':
		*n = ""
		return dec.SkipValue()
	case '0', 0:
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		*n = Number(value)
		return nil
	default:
		return errors.New("a number or null is wanted, not a " + KindName(kind))
	}
}

// orDefault decodes a block: null means that everything in it takes its
// default, which the caller has set already.
func orDefault(dec *jsontext.Decoder, block any) error {
	if dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	return json.UnmarshalDecode(dec, block)
}

// KindName says what a JSON value is, in words.
func KindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return "value"
}
