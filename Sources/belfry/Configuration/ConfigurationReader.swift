import Foundation

/// Reads the members of one object of a configuration file, with faults that name the key, the file
/// and the line.
struct ConfigurationReader {
  private let members: [ConfigurationNode.Member]
  private let name: String
  private let file: String
  private let line: Int
  /// Of the process, for values that name a variable.
  private let environment: [String: String]

  init(
    _ node: ConfigurationNode, name: String, file: String, environment: [String: String] = [:]
  ) throws(ConfigurationError) {
    guard case .object(let members) = node.value else {
      throw ConfigurationError(
        "'\(name)' wants objects, not \(node.kind)", file: file, line: node.line)
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

  /// - Throws: For a key that is none of these.
  func allow(_ keys: [String]) throws(ConfigurationError) {
    for member in members where !keys.contains(member.name) {
      throw ConfigurationError(
        "unknown key '\(member.name)'" + Words.suggestion(member.name, among: keys), file: file,
        line: member.line)
    }
  }

  func text(_ key: String) throws(ConfigurationError) -> String? {
    guard let member = member(key) else { return nil }
    guard case .text(let text) = member.node.value else {
      throw fault(key, "wants a text, not \(member.node.kind)")
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
    guard let text = try text(key) else { return nil }
    let base = URL(fileURLWithPath: file).deletingLastPathComponent()
    return URL(fileURLWithPath: text, relativeTo: base).path
  }

  /// A section of this one.
  func section(_ key: String) throws(ConfigurationError) -> ConfigurationReader? {
    guard let node = member(key)?.node else { return nil }
    return try ConfigurationReader(node, name: key, file: file, environment: environment)
  }

  /// A text that need not stand in the file: `"…"`, `{ "variable": "NAME" }` or
  /// `{ "file": "path" }`, whose content counts without the line end behind it.
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
    default: throw fault(key, "wants a text, or { \"variable\": NAME } or { \"file\": PATH }")
    }
  }

  func integer(_ key: String, in range: ClosedRange<Int>) throws(ConfigurationError) -> Int? {
    guard let member = member(key) else { return nil }
    guard case .number(let text) = member.node.value, let number = Int(text),
      range.contains(number)
    else {
      throw fault(key, "wants a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func list(_ key: String) throws(ConfigurationError) -> [ConfigurationNode] {
    guard let member = member(key) else { return [] }
    guard case .list(let items) = member.node.value else {
      throw fault(key, "wants a list, not \(member.node.kind)")
    }
    return items
  }

  func texts(_ key: String) throws(ConfigurationError) -> [String] {
    var texts: [String] = []
    for item in try list(key) {
      guard case .text(let text) = item.value else {
        throw fault(key, "wants a list of texts; one is \(item.kind)")
      }
      texts.append(text)
    }
    return texts
  }

  func object(_ key: String) throws(ConfigurationError) -> ConfigurationNode? {
    member(key)?.node
  }
}
