import Foundation

/// A page of the documentation, for tests that hold its tables against the program.
package struct DocPage {
  private let lines: [Substring]

  /// - Parameter path: Within the repository, such as `docs/backend.md`.
  package init(_ path: String) throws {
    let root = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    lines = try String(contentsOf: root.appending(path: path), encoding: .utf8)
      .split(separator: "\n")
  }

  /// The rows of the tables below a heading of the second level, as cells.
  package func section(_ title: String) -> [[String]] {
    lines(below: title)
      .filter { $0.hasPrefix("| ") }.map { line in
        line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
          .map { $0.trimmingCharacters(in: .whitespaces) }
      }
  }

  /// The words in backquotes below a heading of the second level.
  package func words(below title: String) -> Set<String> {
    Set(lines(below: title).joined(separator: "\n").matches(of: #/`(\w+)`/#).map { String($0.1) })
  }

  private func lines(below title: String) -> some Sequence<Substring> {
    lines.drop { $0 != "## " + title }.dropFirst().prefix { !$0.hasPrefix("## ") }
  }

  /// The requests that a cell names, such as `PUT, DELETE /api/register/{id}` in backquotes.
  package static func requests(in cell: String) -> [(method: String, path: String)] {
    cell.matches(of: #/`([A-Z, ]+) (\/[^`]*)`/#).flatMap { request in
      request.1.split(separator: ", ").map { (String($0), String(request.2)) }
    }
  }
}
