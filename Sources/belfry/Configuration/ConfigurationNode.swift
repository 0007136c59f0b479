/// A value of a configuration file with the line it stands in, so that a fault can be pointed at.
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
  /// Counted from 1.
  let line: Int

  /// What the value is, for messages.
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

/// Why a configuration cannot be used; names the key, and the file and line where it stands.
struct ConfigurationError: Error, CustomStringConvertible {
  let description: String
  init(_ message: String, file: String? = nil, line: Int? = nil) {
    var place = ""
    if let file { place = line.map { "\(file):\($0): " } ?? "\(file): " }
    description = place + message
  }
}
