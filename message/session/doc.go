// Package session is what clients may do with their conversations: list, read,
// create, rename and delete them, each under the owner that the asking
// principal was authenticated as.
//
// It never trusts an owner named in a request, and stores nothing itself.
package session
