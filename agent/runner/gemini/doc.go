// Package gemini reaches Gemini's models through Google's official SDK. It
// makes one request at a time and never retries.
package gemini
