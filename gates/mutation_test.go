package gates

// Mutants of this package that no test kills, and why none has to. Every other change of one operator, condition,
// assignment or text in the package makes one of its tests fail.
//
//   - Text, bytes.IndexByte(…) < 0 → <= 0: the first byte is a quotation mark there, so the index is never 0.
//   - scanner.value, object := false → true: it is read inside a container only, and opening one sets it.
//   - scanner.value, s.depth = 0 left out: the depth is 0 after each value that was whole, and after one that was not
//     the scanner is not used again.
//   - patchPaths, break → continue: no line begins with two of the words.
//   - unwrapped, len(bare) > n → >=: "file://" alone becomes the empty text, which ends the loop without another path.
