package message

import "github.com/parley-hub/parley/message/value"

// ProviderMessage is the neutral shape that a model request is made from. It
// is a boundary format: it is made with the request and never stored. A nil
// Metadata is absent.
type ProviderMessage struct {
	Role     string
	Content  any
	Metadata *value.Map
}

// ToProvider normalizes a message and projects it.
func ToProvider(message any) (ProviderMessage, error) {
	e, err := Normalize(message)
	if err != nil {
		return ProviderMessage{}, err
	}
	return e.Provider(), nil
}

// ToProviderAll projects a list, with the rules of NormalizeAll.
func ToProviderAll(list any) ([]ProviderMessage, error) {
	envelopes, err := NormalizeAll(list)
	if err != nil {
		return nil, err
	}
	projected := make([]ProviderMessage, 0, len(envelopes))
	for _, e := range envelopes {
		projected = append(projected, e.Provider())
	}
	return projected, nil
}

// Provider folds type and payload into metadata, which wins over the payload.
// A bare text keeps no metadata at all.
func (e Envelope) Provider() ProviderMessage {
	p := ProviderMessage{Role: e.Role, Content: e.Content}
	if e.Type == TypeText && e.Payload.Len() == 0 && e.Metadata.Len() == 0 {
		return p
	}
	p.Metadata = e.Metadata.Clone().Set("type", string(e.Type))
	for key, v := range e.Payload.All() {
		if !p.Metadata.Has(key) {
			p.Metadata.Set(key, v)
		}
	}
	return p
}

// Canonical returns the projection as a map.
func (p ProviderMessage) Canonical() *value.Map {
	m := value.New().Set("role", p.Role).Set("content", p.Content)
	if p.Metadata != nil {
		m.Set("metadata", p.Metadata)
	}
	return m
}

// MarshalJSON writes the projection.
func (p ProviderMessage) MarshalJSON() ([]byte, error) { return p.Canonical().MarshalJSON() }
