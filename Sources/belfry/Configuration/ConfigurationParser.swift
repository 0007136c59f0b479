/// Reads JSON in which `//` and `/* */` comments and trailing commas are allowed, and remembers the
/// line of every key. Foundation's parser knows comments too but forgets where things stood, and a
/// fault in a configuration is worth little without its line.
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
      else { throw fault("\\u wants four hexadecimal digits; write rarer letters as they are") }
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
