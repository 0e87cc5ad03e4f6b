// Package message is the canonical form of an agent message: whatever a host
// or framework hands over is normalized to one provider-neutral envelope, and
// an envelope is projected to the role/content/metadata shape that a model
// request starts from.
//
// It also merges neighbours of one role and finds tool calls and results that
// lost their partner. Compaction, results, channels, chat and transcripts are
// packages below it; vendors' wire forms are message/provider.
//
// It has no clock and no randomness, never invents an id or a date, never
// changes what it was given, and imports no other part of Parley.
package message
