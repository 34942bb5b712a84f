package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// inputs are lines, one for each thing that the result of a check depends on.
type inputs struct {
	lines   []string
	missing []string // what is not on this machine; the check skips a part without it
}

// hash is short, because people read stamps.txt: 16 bytes exclude an accident.
func (in *inputs) hash() string {
	sum := sha256.Sum256([]byte(strings.Join(in.lines, "\n")))
	return fmt.Sprintf("%x", sum[:16])
}

// collect returns the inputs of c in the repository at root.
func (c check) collect(root string, command []string) (*inputs, error) {
	in := &inputs{lines: []string{"go " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, "command " + strings.Join(command, " ")}}
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "FEEDBOX_") { // some name other servers to test against
			in.lines = append(in.lines, variable)
		}
	}
	slices.Sort(in.lines)
	for _, tool := range c.tools {
		in.addTool(tool)
	}
	paths, err := c.sources(root)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(everywhere, c.files) {
		found, err := walk(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			in.lines, in.missing = append(in.lines, name+" missing"), append(in.missing, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		in.lines = append(in.lines, fmt.Sprintf("%s %x", filepath.ToSlash(name), sha256.Sum256(text)))
	}
	return in, nil
}

// addTool adds the version of a program. Only the first line counts, because the others may
// name folders of this machine.
func (in *inputs) addTool(tool string) {
	words := strings.Fields(tool)
	out, err := exec.Command(words[0], words[1:]...).Output()
	version, _, _ := strings.Cut(string(out), "\n")
	if err != nil {
		version = "missing"
		in.missing = append(in.missing, words[0])
	}
	in.lines = append(in.lines, tool+": "+version)
}

// sources returns the Go files, and files embedded in them, that the packages of c are built
// from: those in the repository, since go.sum covers all others.
func (c check) sources(root string) (paths []string, err error) {
	if len(c.packages) == 0 {
		return nil, nil
	}
	args := []string{"list", "-deps", "-test", "-tags", c.tags, "-json=Dir,ImportPath,Standard,GoFiles,CgoFiles,HFiles,SFiles,EmbedFiles,TestEmbedFiles,XTestEmbedFiles"}
	cmd := exec.Command("go", append(args, c.packages...)...)
	cmd.Dir = filepath.Join(root, c.dir)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, &failure)
	}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir, ImportPath                             string
			Standard                                    bool
			GoFiles, CgoFiles, HFiles, SFiles           []string
			EmbedFiles, TestEmbedFiles, XTestEmbedFiles []string
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			return paths, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Standard || strings.HasSuffix(p.ImportPath, ".test") || !within(root, p.Dir) { // x.test is a generated main
			continue
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.HFiles, p.SFiles, p.EmbedFiles, p.TestEmbedFiles, p.XTestEmbedFiles) {
			paths = append(paths, filepath.Join(p.Dir, name))
		}
	}
}

func within(root, dir string) bool {
	name, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(name)
}

// walk returns the file at path, or all files below it. What a run leaves behind is no input.
func walk(path string) (files []string, err error) {
	err = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"node_modules", "__pycache__", "target", ".cache"}, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
