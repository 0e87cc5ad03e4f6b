// Package providers holds Parley's mappings to model providers against the
// official Go SDKs: what we write is decoded with their types and must be all
// there, and what they encode is read by us. It is a module of its own, so that
// the SDKs never reach Parley's users. Nothing is sent anywhere.
package providers
