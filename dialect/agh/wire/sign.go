package wire

import (
	"crypto/ed25519"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Sign proves an envelope: it replaces whatever `proof` it has and changes
// nothing else. Its `from` must be the key's handle.
func (k *Key) Sign(envelope []byte) ([]byte, error) {
	if err := jsonscan.Check(envelope, MaxDepth); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the envelope is not valid JSON: %v", err)
	}
	envelope = jsonscan.Trim(envelope)
	if envelope[0] != '{' {
		return nil, fault.New(fault.Invalid, "the envelope is not a JSON object")
	}
	if from, _ := jsonscan.Text(jsonscan.Member(envelope, "from")); from != k.Handle() {
		return nil, fault.New(fault.Invalid, "`from` is not the handle of the key: %s signs only for itself", k.Handle())
	}
	unsigned, err := withProof(envelope, k.proof(""))
	if err != nil {
		return nil, err
	}
	canonical, err := Canonical(unsigned)
	if err != nil {
		return nil, err
	}
	signed, err := withProof(envelope, k.proof(unpadded.EncodeToString(ed25519.Sign(k.private, canonical))))
	if err == nil && len(signed) > MaxBytes {
		return nil, fault.New(fault.TooLarge, "the signed envelope has %d bytes; the network takes %d", len(signed), MaxBytes)
	}
	return signed, err
}

// proof is the key's proof object; without a signature it is what is signed.
func (k *Key) proof(signature string) []byte {
	b := &jsonbuf.Buffer{}
	b.Open('{')
	b.Key("profile").String(Profile)
	b.Key("alg").String(algorithm)
	b.Key("key_id").String(k.KeyID())
	b.Key("pubkey").String(k.Public())
	if signature != "" {
		b.Key("sig").String(signature)
	}
	return b.Close('}').Bytes
}

// withProof is a checked envelope with another proof.
func withProof(envelope, proof []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: make([]byte, 0, len(envelope)+len(proof)+16)}
	b.Open('{')
	for name, value := range jsonscan.Members(envelope) {
		if string(name) != "proof" {
			b.Key(string(name)).Value(value)
		}
	}
	b.Key("proof").Object(proof)
	b.Close('}')
	return b.Result()
}

// withoutSignature is a proof object without its signature.
func withoutSignature(proof []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{')
	for name, value := range jsonscan.Members(proof) {
		if string(name) != "sig" {
			b.Key(string(name)).Value(value)
		}
	}
	b.Close('}')
	return b.Result()
}
