// Package providers checks Parley's mappings to model providers against the
// official Go SDKs: what we write is decoded with their types and must be
// complete, and what they encode is read by us. It is a module of its own, so
// that the SDKs never reach Parley's users. It sends no request.
package providers
