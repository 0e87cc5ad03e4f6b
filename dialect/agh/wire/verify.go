package wire

import (
	"crypto/ed25519"
	"strings"

	"github.com/parley-hub/parley/internal/jsonscan"
)

// Trust is what is known of who sent an envelope.
type Trust string

// The states of trust. Verified proves that the sender has the handle's key,
// and nothing about what it may do.
const (
	Verified   Trust = "verified"
	Unverified Trust = "unverified"
	Rejected   Trust = "rejected"
)

// Verify judges the proof of a decoded envelope on the bytes it was decoded from.
// Only Rejected comes with a reason. The caller checks pins and allow lists after
// Verify.
func Verify(e *Envelope, data []byte) (Trust, *Rejection) {
	if e.Proof == nil {
		if handleShaped(e.From) {
			return Rejected, unproved("proof", "is missing, and `from` is a handle")
		}
		return Unverified, nil
	}
	proof := readProof(e.Proof)
	if proof.profile != Profile {
		return Unverified, nil
	}
	if fault := proof.judge(e, data); fault != nil {
		return Rejected, fault
	}
	return Verified, nil
}

func unproved(member, detail string) *Rejection {
	return &Rejection{Reason: VerificationFailed, Member: member, Detail: "`" + member + "` " + detail}
}

// proof holds the members of a proof object; one that is no string is empty.
type proof struct {
	raw                               []byte
	profile, alg, keyID, pubkey, sign string
}

func readProof(raw []byte) proof {
	p := proof{raw: raw}
	for name, value := range jsonscan.Members(raw) {
		text, _ := jsonscan.Text(value)
		switch string(name) {
		case "profile":
			p.profile = text
		case "alg":
			p.alg = text
		case "key_id":
			p.keyID = text
		case "pubkey":
			p.pubkey = text
		case "sig":
			p.sign = text
		}
	}
	return p
}

// ProofKeyID is the key that an envelope's proof names; whether it holds is for
// Verify to say.
func ProofKeyID(e *Envelope) string { return readProof(e.Proof).keyID }

// judge takes the profile's steps in their order.
func (p *proof) judge(e *Envelope, data []byte) *Rejection {
	if p.alg != algorithm {
		return unproved("proof.alg", "is not "+algorithm)
	}
	public, ok := decodeExact(p.pubkey, ed25519.PublicKeySize)
	if !ok {
		return unproved("proof.pubkey", "is not 32 bytes in base64url without padding")
	}
	sum := fingerprint(public)
	if p.keyID != "sha256:"+sum {
		return unproved("proof.key_id", "is not the digest of `proof.pubkey`")
	}
	if !ValidHandle(e.From) || !strings.HasSuffix(e.From, "@"+sum[:32]) {
		return unproved("from", "is not a handle of `proof.pubkey`")
	}
	signature, ok := decodeExact(p.sign, ed25519.SignatureSize)
	if !ok {
		return unproved("proof.sig", "is not 64 bytes in base64url without padding")
	}
	canonical, fault := signedBytes(data, p.raw)
	if fault != nil {
		return fault
	}
	if !ed25519.Verify(public, canonical, signature) {
		return unproved("proof.sig", "does not sign this envelope")
	}
	return nil
}

// signedBytes is what a signature covers: the canonical form of all that was
// received, but for the signature itself.
func signedBytes(data, raw []byte) ([]byte, *Rejection) {
	stripped, err := withoutSignature(raw)
	if err == nil {
		var unsigned []byte
		if unsigned, err = withProof(jsonscan.Trim(data), stripped); err == nil {
			var canonical []byte
			if canonical, err = Canonical(unsigned); err == nil {
				return canonical, nil
			}
		}
	}
	return nil, unproved("proof", "cannot be judged: the envelope has no canonical form")
}
