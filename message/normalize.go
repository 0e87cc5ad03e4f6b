package message

import (
	"iter"

	"github.com/parley-hub/parley/message/value"
)

// Normalize brings a message to its envelope: a plain role/content/metadata
// row, a versioned envelope, one with its payload under data, or an Envelope.
// Every error is an *Error.
func Normalize(message any) (Envelope, error) {
	e, err := normalize(value.Of(message))
	if err != nil {
		return Envelope{}, err
	}
	// The caller's value must not change with the envelope.
	e.Payload, e.Metadata = e.Payload.Clone(), e.Metadata.Clone()
	return e, nil
}

// NormalizeJSON normalizes a JSON text. Text that is not one valid JSON value,
// or has a key twice, is not serializable.
func NormalizeJSON(data []byte) (Envelope, error) {
	v, err := value.Decode(data)
	if err != nil {
		return Envelope{}, Unserializable(err)
	}
	return normalize(v)
}

// NormalizeAll normalizes the values of a list, or of an object whose keys are
// discarded. The first message that is refused refuses all.
func NormalizeAll(list any) ([]Envelope, error) {
	items, ok := value.Values(value.Of(list))
	if !ok {
		return nil, ErrNotContainer
	}
	envelopes := make([]Envelope, 0, len(items))
	for _, item := range items {
		e, err := Normalize(item)
		if err != nil {
			return nil, err
		}
		envelopes = append(envelopes, e)
	}
	return envelopes, nil
}

// NormalizeSeq normalizes messages as they come. What is refused is yielded
// with its error; the caller decides whether to go on.
func NormalizeSeq(messages iter.Seq[any]) iter.Seq2[Envelope, error] {
	return func(yield func(Envelope, error) bool) {
		for m := range messages {
			if !yield(Normalize(m)) {
				return
			}
		}
	}
}

// TypeOf returns the type a message normalizes to.
func TypeOf(message any) (Type, error) {
	e, err := Normalize(message)
	return e.Type, err
}

func normalize(v any) (Envelope, error) {
	if !value.IsContainer(v) {
		return Envelope{}, ErrNotContainer
	}
	m, _ := v.(*value.Map) // an array has none of the keys
	var e Envelope
	var err error
	if isEnvelope(m) {
		e, err = fromEnvelope(m)
	} else {
		e, err = fromPlain(m)
	}
	if err != nil {
		return Envelope{}, err
	}
	e.ID, _ = m.At("id").(string)
	e.CreatedAt, _ = m.At("created_at").(string)
	e.UpdatedAt, _ = m.At("updated_at").(string)
	if err := e.check(); err != nil {
		return Envelope{}, Unserializable(err)
	}
	return e, nil
}

// isEnvelope reports whether m is a versioned envelope and not a plain row. The
// value of schema is ignored, and payload or data count even when they are null.
func isEnvelope(m *value.Map) bool {
	return m.At("version") != nil && m.At("type") != nil &&
		(m.At("schema") != nil || m.Has("payload") || m.Has("data"))
}

func fromEnvelope(m *value.Map) (Envelope, error) {
	if !supportedVersion(m.At("version")) {
		return Envelope{}, ErrVersion
	}
	name, _ := m.At("type").(string)
	t := Type(name)
	if !t.Supported() {
		return Envelope{}, ErrType
	}
	payload := value.MapOrEmpty(m.At("payload"))
	if data := m.At("data"); payload.Len() == 0 && value.IsContainer(data) {
		payload = value.MapOrEmpty(data)
	}
	return build(t, m.At("role"), m.At("content"), payload, value.MapOrEmpty(m.At("metadata")))
}

func supportedVersion(v any) bool {
	if s, ok := v.(string); ok {
		return value.LeadingInt(s) == Version
	}
	i, ok := value.Integer(v)
	return ok && i == Version
}

func fromPlain(m *value.Map) (Envelope, error) {
	metadata := value.MapOrEmpty(m.At("metadata"))
	t := infer(m.At("content"), metadata)
	payload := value.New()
	for _, key := range t.lifted() {
		if v, ok := metadata.Get(key); ok {
			payload.Set(key, v)
		}
	}
	return build(t, m.At("role"), m.At("content"), payload, metadata)
}

// infer gives a plain row its type; the first match wins.
func infer(content any, metadata *value.Map) Type {
	name, _ := metadata.At("type").(string)
	switch {
	case Type(name).Supported():
		return Type(name)
	case name == multimodalAlias, value.IsContainer(content):
		return TypeMultimodalPart
	case metadata.At("error") != nil:
		return TypeError
	default:
		return TypeText
	}
}

// build puts the defaults where role and content are missing or null.
func build(t Type, role, content any, payload, metadata *value.Map) (Envelope, error) {
	if role == nil {
		role = t.DefaultRole()
	}
	if content == nil {
		content = ""
	}
	return compose(t, role, content, payload, metadata)
}

// compose applies the rules for role and content.
func compose(t Type, role, content any, payload, metadata *value.Map) (Envelope, error) {
	name, ok := value.NonEmptyString(role)
	if !ok {
		return Envelope{}, ErrRole
	}
	if _, ok := content.(string); !ok && !value.IsContainer(content) {
		return Envelope{}, ErrContent
	}
	return Envelope{Type: t, Role: name, Content: content, Payload: payload, Metadata: metadata}, nil
}

// check refuses what JSON cannot represent. The envelope itself is the first
// level of nesting.
func (e Envelope) check() error {
	for _, v := range [...]any{e.Role, e.Content, e.Payload, e.Metadata, e.ID, e.CreatedAt, e.UpdatedAt} {
		if err := value.Check(v, 1); err != nil {
			return err
		}
	}
	return nil
}
