import Foundation

/// A value of a configuration file with its line, for error messages.
struct ConfigurationNode: Sendable {
  indirect enum Value: Sendable {
    case text(String)
    case number(String)
    case flag(Bool)
    case null
    case list([ConfigurationNode])
    case object([Member])
  }

  struct Member: Sendable {
    let name: String
    let line: Int
    let node: ConfigurationNode
  }

  let value: Value
  /// The line, counted from 1.
  let line: Int

  /// The kind of value, for messages.
  var kind: String {
    switch value {
    case .text: "a text"
    case .number: "a number"
    case .flag: "true or false"
    case .null: "null"
    case .list: "a list"
    case .object: "an object"
    }
  }
}

/// The error for an invalid configuration, with its key, file and line.
struct ConfigurationError: Error, CustomStringConvertible {
  let description: String
  init(_ message: String, file: String? = nil, line: Int? = nil) {
    var place = ""
    if let file { place = line.map { "\(file):\($0): " } ?? "\(file): " }
    description = place + message
  }
}

/// Parses JSON with `//` and `/* */` comments and trailing commas, and records the line of every
/// key. Foundation's parser supports comments but not positions, and an error in a configuration
/// needs its line.
struct ConfigurationParser {
  private let bytes: [UInt8]
  private let file: String
  private var index = 0
  private var line = 1

  static func parse(_ text: String, file: String) throws(ConfigurationError) -> ConfigurationNode {
    var parser = ConfigurationParser(bytes: Array(text.utf8), file: file)
    let node = try parser.value(depth: 0)
    try parser.skipBlanks()
    guard parser.index == parser.bytes.count else { throw parser.fault("nothing may follow here") }
    return node
  }

  private init(bytes: [UInt8], file: String) {
    self.bytes = bytes
    self.file = file
  }

  private func fault(_ message: String) -> ConfigurationError {
    ConfigurationError(message, file: file, line: line)
  }

  private var current: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func advance() {
    if bytes[index] == UInt8(ascii: "\n") { line += 1 }
    index += 1
  }

  private mutating func skipBlanks() throws(ConfigurationError) {
    while let byte = current {
      if byte == UInt8(ascii: " ") || byte == 9 || byte == 10 || byte == 13 {
        advance()
      } else if byte == UInt8(ascii: "/") {
        try skipComment()
      } else {
        return
      }
    }
  }

  private mutating func skipComment() throws(ConfigurationError) {
    let start = line
    advance()
    switch current {
    case UInt8(ascii: "/"):
      while let byte = current, byte != UInt8(ascii: "\n") { advance() }
    case UInt8(ascii: "*"):
      advance()
      var previous: UInt8 = 0
      while let byte = current {
        advance()
        if previous == UInt8(ascii: "*") && byte == UInt8(ascii: "/") { return }
        previous = byte
      }
      throw ConfigurationError("a comment is not closed", file: file, line: start)
    default: throw fault("a comment begins with // or /*")
    }
  }

  private mutating func value(depth: Int) throws(ConfigurationError) -> ConfigurationNode {
    try skipBlanks()
    let start = line
    guard depth < 32 else { throw fault("nested too deeply") }
    guard let byte = current else { throw fault("a value is missing") }
    let value: ConfigurationNode.Value
    switch byte {
    case UInt8(ascii: "{"): value = .object(try members(depth: depth))
    case UInt8(ascii: "["): value = .list(try items(depth: depth))
    case UInt8(ascii: "\""): value = .text(try text())
    default: value = try word()
    }
    return ConfigurationNode(value: value, line: start)
  }

  private mutating func members(depth: Int) throws(ConfigurationError)
    -> [ConfigurationNode.Member]
  {
    advance()
    var members: [ConfigurationNode.Member] = []
    while true {
      try skipBlanks()
      if try closes(with: "}") { return members }
      guard current == UInt8(ascii: "\"") else { throw fault("a key in double quotes is wanted") }
      let keyLine = line
      let name = try text()
      if let earlier = members.first(where: { $0.name == name }) {
        throw ConfigurationError(
          "'\(name)' stands in line \(earlier.line) already", file: file, line: keyLine)
      }
      try skipBlanks()
      guard current == UInt8(ascii: ":") else { throw fault("':' is wanted after '\(name)'") }
      advance()
      let node = try value(depth: depth + 1)
      members.append(.init(name: name, line: keyLine, node: node))
      try separator(before: "}")
    }
  }

  private mutating func items(depth: Int) throws(ConfigurationError) -> [ConfigurationNode] {
    advance()
    var items: [ConfigurationNode] = []
    while true {
      try skipBlanks()
      if try closes(with: "]") { return items }
      items.append(try value(depth: depth + 1))
      try separator(before: "]")
    }
  }

  private mutating func closes(with end: Unicode.Scalar) throws(ConfigurationError) -> Bool {
    guard let byte = current else { throw fault("'\(end)' is missing") }
    guard byte == UInt8(ascii: end) else { return false }
    advance()
    return true
  }

  private mutating func separator(before end: Unicode.Scalar) throws(ConfigurationError) {
    try skipBlanks()
    if current == UInt8(ascii: ",") {
      advance()
    } else if current != UInt8(ascii: end) {
      throw fault("',' or '\(end)' is wanted")
    }
  }

  private mutating func text() throws(ConfigurationError) -> String {
    let start = line
    advance()
    var scalars: [UInt8] = []
    while let byte = current {
      switch byte {
      case UInt8(ascii: "\""):
        advance()
        guard let text = String(validating: scalars, as: UTF8.self) else {
          throw fault("a text is not UTF-8")
        }
        return text
      case UInt8(ascii: "\n"):
        throw ConfigurationError("a text is not closed", file: file, line: start)
      case UInt8(ascii: "\\"):
        advance()
        scalars += try escaped()
      default:
        scalars.append(byte)
        advance()
      }
    }
    throw ConfigurationError("a text is not closed", file: file, line: start)
  }

  private mutating func escaped() throws(ConfigurationError) -> [UInt8] {
    guard let byte = current else { throw fault("a text is not closed") }
    advance()
    switch byte {
    case UInt8(ascii: "n"): return [10]
    case UInt8(ascii: "t"): return [9]
    case UInt8(ascii: "r"): return [13]
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "u"):
      let digits = bytes[index..<min(index + 4, bytes.count)]
      guard digits.count == 4,
        let code = UInt32(String(decoding: digits, as: UTF8.self), radix: 16),
        let scalar = Unicode.Scalar(code)
      else { throw fault("\\u needs four hexadecimal digits; write rarer letters as they are") }
      index += 4
      return Array(String(Character(scalar)).utf8)
    default: throw fault("unknown escape '\\\(Character(Unicode.Scalar(byte)))'")
    }
  }

  private mutating func word() throws(ConfigurationError) -> ConfigurationNode.Value {
    let start = index
    while let byte = current, byte > UInt8(ascii: " "), !",]}/:".utf8.contains(byte) { advance() }
    let word = String(decoding: bytes[start..<index], as: UTF8.self)
    switch word {
    case "true": return .flag(true)
    case "false": return .flag(false)
    case "null": return .null
    default:
      guard !word.isEmpty, Double(word) != nil else {
        throw fault("'\(word)' is no value; texts want double quotes")
      }
      return .number(word)
    }
  }
}

/// Reads the members of one object of a configuration file; errors name the key, the file and the
/// line.
struct ConfigurationReader {
  private let members: [ConfigurationNode.Member]
  private let name: String
  private let file: String
  private let line: Int
  /// The environment, for values that name a variable.
  private let environment: [String: String]

  init(
    _ node: ConfigurationNode, name: String, file: String, environment: [String: String] = [:]
  ) throws(ConfigurationError) {
    guard case .object(let members) = node.value else {
      throw ConfigurationError(
        "'\(name)' must be an object, not \(node.kind)", file: file, line: node.line)
    }
    self.members = members
    self.name = name
    self.file = file
    self.environment = environment
    line = node.line
  }

  private func member(_ key: String) -> ConfigurationNode.Member? {
    members.first { $0.name == key }.flatMap {
      if case .null = $0.node.value { nil } else { $0 }
    }
  }

  func fault(_ key: String, _ message: String) -> ConfigurationError {
    ConfigurationError("'\(key)': \(message)", file: file, line: member(key)?.line ?? line)
  }

  /// - Throws: An error for a key that is not among these.
  func allow(_ keys: [String]) throws(ConfigurationError) {
    for member in members where !keys.contains(member.name) {
      throw ConfigurationError(
        "unknown key '\(member.name)'" + Suggestion.text(for: member.name, among: keys), file: file,
        line: member.line)
    }
  }

  func text(_ key: String) throws(ConfigurationError) -> String? {
    guard let member = member(key) else { return nil }
    guard case .text(let text) = member.node.value else {
      throw fault(key, "must be a text, not \(member.node.kind)")
    }
    return text
  }

  func required(_ key: String) throws(ConfigurationError) -> String {
    guard let text = try text(key), !text.isEmpty else {
      throw ConfigurationError("'\(key)' is missing in '\(name)'", file: file, line: line)
    }
    return text
  }

  /// A path; a relative one starts at the configuration file's directory.
  func path(_ key: String) throws(ConfigurationError) -> String? {
    try text(key).map(located)
  }

  /// The absolute path for a text of the file.
  func located(_ text: String) -> String {
    let base = URL(fileURLWithPath: file).deletingLastPathComponent()
    return URL(fileURLWithPath: text, relativeTo: base).path
  }

  /// A nested section.
  func section(_ key: String) throws(ConfigurationError) -> ConfigurationReader? {
    guard let node = member(key)?.node else { return nil }
    return try ConfigurationReader(node, name: key, file: file, environment: environment)
  }

  /// A text that may be stored elsewhere: `"…"`, `{ "variable": "NAME" }` or `{ "file": "path" }`,
  /// whose content is used without the final line end.
  func secret(_ key: String) throws(ConfigurationError) -> String? {
    guard let member = member(key) else { return nil }
    guard case .object = member.node.value else { return try text(key) }
    let source = try ConfigurationReader(member.node, name: key, file: file)
    try source.allow(["variable", "file"])
    switch (try source.text("variable"), try source.path("file")) {
    case (let name?, nil):
      guard let value = environment[name], !value.isEmpty else {
        throw fault(key, "the variable \(name) is not set")
      }
      return value
    case (nil, let path?):
      do {
        return try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines)
      } catch {
        throw fault(key, "\(path) cannot be read: \(Configuration.reason(error))")
      }
    default: throw fault(key, "must be a text, or { \"variable\": NAME } or { \"file\": PATH }")
    }
  }

  func integer(_ key: String, in range: ClosedRange<Int>) throws(ConfigurationError) -> Int? {
    guard let member = member(key) else { return nil }
    guard case .number(let text) = member.node.value, let number = Int(text),
      range.contains(number)
    else {
      throw fault(key, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func list(_ key: String) throws(ConfigurationError) -> [ConfigurationNode] {
    guard let member = member(key) else { return [] }
    guard case .list(let items) = member.node.value else {
      throw fault(key, "must be a list, not \(member.node.kind)")
    }
    return items
  }

  func texts(_ key: String) throws(ConfigurationError) -> [String] {
    var texts: [String] = []
    for item in try list(key) {
      guard case .text(let text) = item.value else {
        throw fault(key, "must be a list of texts; one is \(item.kind)")
      }
      texts.append(text)
    }
    return texts
  }
}
