package wire

import "time"

// checkFresh judges an envelope's age at now, in Unix seconds.
func checkFresh(e *Envelope, now int64, age time.Duration) *Rejection {
	if age <= 0 {
		age = DefaultReplayAge
	}
	window := int64(age / time.Second)
	switch {
	case e.TS-now > window:
		return expired("ts", "is too far ahead of the receiver's clock; check the sender's")
	case e.ExpiresAt != nil && *e.ExpiresAt <= now:
		return expired("expires_at", "has passed; send a new envelope")
	case e.ExpiresAt == nil && now-e.TS > window:
		return expired("ts", "is older than the replay age; send a new envelope, or set `expires_at`")
	}
	return nil
}

func expired(member, detail string) *Rejection {
	return &Rejection{Reason: Expired, Member: member, Detail: "`" + member + "` " + detail, Answerable: true}
}

// FreshUntil is the last second at which a receiver with a replay age accepts
// the envelope.
func (e *Envelope) FreshUntil(age time.Duration) int64 {
	if e.ExpiresAt != nil {
		return *e.ExpiresAt - 1
	}
	if age <= 0 {
		age = DefaultReplayAge
	}
	return e.TS + int64(age/time.Second)
}
