package identity

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// Kind is what an identity is. The empty kind is written as null and means an
// agent.
type Kind string

const (
	Unspecified Kind = ""
	Agent       Kind = "agent"
	Human       Kind = "human"
	RemoteAgent Kind = "remote_agent"
)

// ParseKind reads a kind's name.
func ParseKind(s string) (Kind, error) {
	switch k := Kind(s); k {
	case Agent, Human, RemoteAgent:
		return k, nil
	}
	return Unspecified, fault.New(fault.Invalid, "kind %q is unknown; it is agent, human, remote_agent or null", s)
}

// Is reports whether an identity of this kind counts as other: no kind counts
// as an agent.
func (k Kind) Is(other Kind) bool { return k.orAgent() == other.orAgent() }

func (k Kind) orAgent() Kind {
	if k == Unspecified {
		return Agent
	}
	return k
}

// MarshalJSONTo writes the name, or null.
func (k Kind) MarshalJSONTo(enc *jsontext.Encoder) error {
	if k == Unspecified {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteToken(jsontext.String(string(k)))
}

// UnmarshalJSONFrom reads a known name, or null.
func (k *Kind) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var name *string
	if err := json.UnmarshalDecode(dec, &name); err != nil {
		return err
	}
	if name == nil {
		*k = Unspecified
		return nil
	}
	parsed, err := ParseKind(*name)
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}
