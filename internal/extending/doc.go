// Package extending holds the smallest working adapter, dialect and engine, as
// tests: docs/extending.md explains them. It has no code of its own.
package extending
