// Package anthropic reaches Anthropic's models through its official SDK. It
// makes one request at a time, never retries, and reads no environment
// variable.
package anthropic
