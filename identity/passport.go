package identity

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// MaxName bounds a name, in bytes.
const MaxName = 1024

// Passport says who an identity is. The hub stamps AgentID and CreatedAt.
type Passport struct {
	Name      string    `json:"name"`
	Owner     string    `json:"owner"`
	Provider  *string   `json:"provider"`
	Model     *string   `json:"model"`
	Cost      *Cost     `json:"cost"`
	Region    *string   `json:"region"`
	Auth      Auth      `json:"auth"`
	Kind      Kind      `json:"kind"`
	HubID     *string   `json:"hub_id"`
	Version   int64     `json:"version"`
	AgentID   string    `json:"agent_id"`
	CreatedAt time.Time `json:"created_at"`
}

// Cost is what an identity's model costs, as its owner states it.
type Cost struct {
	InputPerMTok  Number  `json:"input_per_mtok"`
	OutputPerMTok Number  `json:"output_per_mtok"`
	LatencyTier   *string `json:"latency_tier"`
}

// Auth is how an identity proves itself. Claim is set only on the way to a
// hub: what a hub keeps is the claim's hash.
type Auth struct {
	Scheme         string    `json:"scheme"`
	Issuer         *string   `json:"issuer"`
	Audience       *string   `json:"audience"`
	KeyFingerprint *string   `json:"key_fingerprint"`
	Claim          Object    `json:"claim"`
	ClaimHash      ClaimHash `json:"-"`
}

type (
	passportFields Passport
	authFields     Auth
)

// UnmarshalJSONFrom fills in the defaults of missing keys.
func (p *Passport) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	fields := passportFields{Auth: Auth{Scheme: SchemeNone}, Version: 1}
	if err := orDefault(dec, &fields); err != nil {
		return err
	}
	*p = Passport(fields)
	return nil
}

// UnmarshalJSONFrom fills in the defaults of missing keys.
func (a *Auth) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	fields := authFields{Scheme: SchemeNone}
	if err := orDefault(dec, &fields); err != nil {
		return err
	}
	*a = Auth(fields)
	return nil
}

// Validate refuses a passport that no hub could register.
func (p *Passport) Validate() error {
	switch {
	case p.Name == "":
		return fault.New(fault.Invalid, "passport.name is missing; a non-empty string is wanted")
	case len(p.Name) > MaxName:
		return fault.New(fault.TooLarge, "passport.name has %d bytes; at most %d", len(p.Name), MaxName)
	case !utf8.ValidString(p.Name):
		return fault.New(fault.Invalid, "passport.name is not valid UTF-8")
	case p.Auth.Scheme == "":
		return fault.New(fault.Invalid, "passport.auth.scheme is empty; %q needs no credentials", SchemeNone)
	}
	if p.Kind != Unspecified {
		if _, err := ParseKind(string(p.Kind)); err != nil {
			return err
		}
	}
	return nil
}

// Redacted returns a copy that holds the claim's hash in place of the claim.
// It is what a hub keeps and shows.
func (p *Passport) Redacted() *Passport {
	c := *p
	if len(c.Auth.Claim) > 0 {
		c.Auth.ClaimHash = HashClaim(c.Auth.Claim)
		c.Auth.Claim = nil
	}
	return &c
}

// passportRecord is the form in which a hub stores a passport.
type passportRecord struct {
	passportFields `json:",inline"`
	ClaimHash      ClaimHash `json:"claim_hash,omitzero"`
}

// Record writes a passport for storage: our own form, with the claim's hash
// and never the claim.
func (p *Passport) Record() ([]byte, error) {
	r := p.Redacted()
	return json.Marshal(passportRecord{passportFields(*r), r.Auth.ClaimHash}, ownForm)
}

// ParseRecord reads what Record wrote.
func ParseRecord(data []byte) (*Passport, error) {
	record := passportRecord{passportFields: passportFields{Auth: Auth{Scheme: SchemeNone}, Version: 1}}
	if err := json.Unmarshal(data, &record, ownForm); err != nil {
		return nil, Explain("passport", err)
	}
	p := Passport(record.passportFields)
	p.Auth.Claim = nil
	p.Auth.ClaimHash = record.ClaimHash
	return &p, nil
}

// Clone returns a copy that shares no memory that either may change.
func (p *Passport) Clone() *Passport {
	c := *p
	c.Auth.Claim = slices.Clone(p.Auth.Claim)
	if p.Cost != nil {
		cost := *p.Cost
		c.Cost = &cost
	}
	return &c
}
