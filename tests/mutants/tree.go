package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func moduleRoot(ctx context.Context) (string, error) {
	return output(ctx, ".", "go", "list", "-m", "-f", "{{.Dir}}")
}

// copyTree copies the files of HEAD, or of the checkout, to a temporary directory. Tests
// are built there with -trimpath, because otherwise its name would be part of every key
// of the build cache.
func copyTree(ctx context.Context, root string, checkout bool) (tree string, remove func(), err error) {
	tree, err = os.MkdirTemp("", "mutants-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(tree) }
	if tree, err = filepath.EvalSymlinks(tree); err == nil {
		if checkout {
			err = copyCheckout(ctx, root, tree)
		} else {
			err = copyHead(ctx, root, tree)
		}
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("copy the tree: %w", err)
	}
	return tree, remove, nil
}

func copyHead(ctx context.Context, root, tree string) error {
	archive := exec.CommandContext(ctx, "git", "archive", "HEAD")
	archive.Dir = root
	files, err := archive.Output()
	if err != nil {
		return err
	}
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", tree)
	unpack.Stdin = bytes.NewReader(files)
	return unpack.Run()
}

// copyCheckout copies tracked and new files, but no ignored ones.
func copyCheckout(ctx context.Context, root, tree string) error {
	list, err := output(ctx, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		err := copyFile(filepath.Join(root, name), filepath.Join(tree, name))
		if err != nil && !os.IsNotExist(err) { // deleted, but not committed
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// overlay writes the mutated files to dir and returns the file for go build -overlay that
// replaces the originals with them.
func (m *mutant) overlay(tree, dir string) (string, error) {
	replace := map[string]string{}
	texts, err := m.texts(tree)
	if err != nil {
		return "", err
	}
	for name, text := range texts {
		original, mutated := filepath.Join(tree, name), filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(mutated), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(mutated, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[original] = mutated
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, list, 0o644)
}

// texts returns the mutated files by their names.
func (m *mutant) texts(tree string) (map[string]string, error) {
	all := map[string]string{}
	for _, c := range m.changes {
		source, err := os.ReadFile(filepath.Join(tree, c.file))
		if err != nil && !os.IsNotExist(err) { // a mutant may create a file
			return nil, err
		}
		if all[c.file], err = c.apply(string(source)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}
