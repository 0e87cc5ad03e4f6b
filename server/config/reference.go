package config

import (
	"fmt"
	"io"
)

// WriteReference writes the reference page: every key, its default and its
// meaning, as Markdown.
func (t Table) WriteReference(w io.Writer) error {
	_, err := fmt.Fprintf(w, `# Configuration

Settings come from a file (`+"`%s`"+` in the working folder, or `+"`--config FILE`"+`), then from the
environment, then from flags of `+"`parley serve`"+`; the later ones win. Any key can be set with
`+"`--set key=value`"+`. `+"`parley config show`"+` says which value is in force and where it came from,
`+"`parley config check FILE`"+` whether a file is right.

This page is the output of `+"`parley config reference`"+`.

`, DefaultFile)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(w, "| Key | Default | Type | Environment | Flag | Meaning |\n|---|---|---|---|---|---|\n"); err != nil {
		return err
	}
	for _, key := range t {
		_, err := fmt.Fprintf(w, "| `%s` | %s | %s | `%s` | %s | %s |\n",
			key.Name, code(key.Default), key.Type(), key.Env(), code(flagName(key.Flag)), key.Meaning)
		if err != nil {
			return err
		}
	}
	return nil
}

func flagName(flag string) string {
	if flag == "" {
		return ""
	}
	return "--" + flag
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// Row is one key of the reference, for -o json.
type Row struct {
	Key     string   `json:"key"`
	Default string   `json:"default"`
	Type    string   `json:"type"`
	Choices []string `json:"choices,omitempty"`
	Env     string   `json:"env"`
	Flag    string   `json:"flag,omitempty"`
	Meaning string   `json:"meaning"`
}

// Reference is the table of keys as data.
func (t Table) Reference() []Row {
	rows := make([]Row, 0, len(t))
	for _, key := range t {
		rows = append(rows, Row{key.Name, key.Default, key.Type(), key.Choices, key.Env(), flagName(key.Flag), key.Meaning})
	}
	return rows
}
