// Package gemini maps canonical messages to the JSON of Gemini's
// generateContent and back.
//
// It makes no requests and keeps nothing: thoughts and thought signatures live
// in the messages' metadata under "gemini" and are returned verbatim.
package gemini

// Vendor is the metadata key of Gemini's own fields.
const Vendor = "gemini"

// roleModel is what the interface calls the assistant.
const roleModel = "model"
