package import Foundation

/// Overwrites the pages of rows that hold a word, in a database that nobody has open.
///
/// - Parameter sparing: Pages with this word stay as they are.
/// - Returns: How many pages are garbage now.
package func damagePages(of database: URL, holding word: String, sparing: String) throws -> Int {
  let size = 4096
  // The first byte of a page with rows.
  let leaf: UInt8 = 13
  var data = try Data(contentsOf: database)
  var found = 0
  for page in 1..<max(2, data.count / size) {
    let range = page * size..<min(data.count, (page + 1) * size)
    guard range.count == size, data[range.lowerBound] == leaf,
      data[range].range(of: Data(word.utf8)) != nil,
      data[range].range(of: Data(sparing.utf8)) == nil
    else { continue }
    found += 1
    data.replaceSubrange(range, with: Data(repeating: 0xee, count: size))
  }
  try data.write(to: database)
  return found
}
