package peer

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// Key signs for a handle.
type Key struct {
	private ed25519.PrivateKey
	sum     string // hex of the public key's hash
	Handle  string
}

// NewKey makes a key from a text, and the handle of a nickname.
func NewKey(text, nickname string) *Key {
	seed := sha256.Sum256([]byte(text))
	k := &Key{private: ed25519.NewKeyFromSeed(seed[:])}
	public := k.public()
	sum := sha256.Sum256(public)
	k.sum = hex.EncodeToString(sum[:])
	k.Handle = nickname + "@" + k.sum[:32]
	return k
}

func (k *Key) public() ed25519.PublicKey {
	return k.private.Public().(ed25519.PublicKey)
}

// KeyID names the key that a peer signs with.
func (p *Peer) KeyID() string { return "sha256:" + p.key.sum }

// Sign returns the envelope with a proof of the whole of it.
func (k *Key) Sign(e Envelope) Envelope {
	proof := map[string]any{
		"profile": "agh-network.trust.ed25519-jcs/v1", "alg": "Ed25519", "key_id": "sha256:" + k.sum,
		"pubkey": base64.RawURLEncoding.EncodeToString(k.public()),
	}
	e = e.With(Envelope{"proof": proof})
	proof["sig"] = base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.private, e.Canonical()))
	return e
}
