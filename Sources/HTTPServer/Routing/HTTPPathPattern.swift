/// The parts of a path that a pattern's `{name}`s stand for, by name.
package struct HTTPPathParameters: Sendable {
  private var values: [(name: String, segments: ArraySlice<HTTPPathSegment>)] = []

  init() {}

  mutating func add(_ name: String, _ segments: ArraySlice<HTTPPathSegment>) {
    values.append((name, segments))
  }

  /// The text a name stands for, each segment decoded once, several joined with `/`; `nil` if the
  /// pattern has no such name or the encoding is broken.
  package subscript(name: String) -> String? {
    guard let segments = values.first(where: { $0.name == name })?.segments else { return nil }
    if segments.count == 1 { return segments.first?.decoded }
    var parts: [String] = []
    for segment in segments {
      guard let decoded = segment.decoded else { return nil }
      parts.append(decoded)
    }
    return parts.joined(separator: "/")
  }
}

/// A compiled path pattern; see `HTTPRouteTable` for the language.
struct HTTPPathPattern: Sendable {
  private enum Part: Sendable {
    case word([UInt8])
    case name(String)
  }

  /// The name of a leading `{name+}`.
  private let prefix: String?
  private let parts: [Part]

  init(_ pattern: String) {
    var words = pattern.split(separator: "/")[...]
    if let first = words.first, first.hasPrefix("{"), first.hasSuffix("+}") {
      prefix = String(first.dropFirst().dropLast(2))
      words = words.dropFirst()
    } else {
      prefix = nil
    }
    parts = words.map { word in
      word.hasPrefix("{") && word.hasSuffix("}")
        ? .name(String(word.dropFirst().dropLast())) : .word(Array(word.utf8))
    }
  }

  /// What the names stand for if the whole path fits. An empty segment fits no name.
  func match(_ segments: [HTTPPathSegment]) -> HTTPPathParameters? {
    var parameters = HTTPPathParameters()
    let start = segments.count - parts.count
    if let prefix {
      guard start >= 1, segments[..<start].allSatisfy({ !$0.raw.isEmpty }) else { return nil }
      parameters.add(prefix, segments[..<start])
    } else if start != 0 {
      return nil
    }
    for (index, part) in parts.enumerated() {
      let segment = segments[start + index]
      switch part {
      case .word(let word):
        guard segment.isWord(word) else { return nil }
      case .name(let name):
        guard !segment.raw.isEmpty else { return nil }
        parameters.add(name, segments[(start + index)...(start + index)])
      }
    }
    return parameters
  }
}

extension HTTPPathSegment {
  /// Whether this is the word, escapes decoded (`%24batch` is `$batch`), case ignored.
  fileprivate func isWord(_ word: [UInt8]) -> Bool {
    if raw.contains(ASCII.percent) {
      return decoded.map { ASCII.equalIgnoringCase($0.utf8, word) } ?? false
    }
    return ASCII.equalIgnoringCase(raw, word)
  }
}
