// Package openai reaches OpenAI's models, and those of servers that speak its
// chat completions, through OpenAI's official SDK. It makes one request at a
// time, never retries, and reads no environment variable.
package openai
