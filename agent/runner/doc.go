// Package runner is a model behind a provider's interface: prompts become
// canonical messages and a request, and a streamed reply becomes a response. It
// retries with backoff, keeps to a budget, and passes the reply to an observer
// as it arrives.
//
// It knows no provider. The packages below it do, each through its official
// SDK, which nothing else imports. A provider's key is in no log, error,
// message or answer.
package runner
