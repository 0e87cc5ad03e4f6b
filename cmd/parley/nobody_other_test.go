//go:build !unix

package main

func mainAsNobody() { main() }
