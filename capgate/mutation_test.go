package capgate

// Mutants of this package that no test kills, and why none has to. Every other change of one operator, condition,
// assignment or text in the package makes one of its tests fail.
//
//   - Facts.admissionCounts, the last || → &&: the first conditions only save the work of asking the gates, which do
//     not answer with an admission's code where the admission is off.
//   - cut, limit > 0 → limit >= 0: [WithID] has made the text valid UTF-8, so the loop ends at the start of a rune, four
//     bytes back at the most. It never gets to the text's first byte.
