package main

import (
	"debug/buildinfo"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"time"
)

// bom is the part of CycloneDX 1.5 that we write: the modules that the linker
// put into the binary, as the binary itself lists them.
type bom struct {
	Format     string      `json:"bomFormat"`
	Version    string      `json:"specVersion"`
	Revision   int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

func module(kind, name, version string) component {
	purl := "pkg:golang/" + name + "@" + url.PathEscape(version)
	return component{Ref: purl, Type: kind, Name: name, Version: version, PURL: purl}
}

// writeSBOM writes what a binary is made of beside its archive.
func (r *release) writeSBOM(binary, name string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	b := bom{
		Format: "CycloneDX", Version: "1.5", Revision: 1,
		Metadata:   metadata{r.at.Format(time.RFC3339), module("application", info.Main.Path, r.stamp)},
		Components: []component{module("library", "std", info.GoVersion)},
	}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		b.Components = append(b.Components, module("library", dep.Path, dep.Version))
	}
	return create(filepath.Join(r.out, name+".sbom.json"), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(b)
	})
}
