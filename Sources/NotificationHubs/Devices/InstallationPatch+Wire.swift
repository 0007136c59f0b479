import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

extension InstallationPatch {
  /// The most operations that one patch may have.
  package static let maximumOperations = 1_000

  /// The JSON that is sent to a hub: an array of `{op, path, value}`.
  public var jsonData: Data {
    var writer = JSONWriter()
    writer.beginArray()
    for operation in operations {
      writer.beginObject()
      writer.name("op")
      writer.string(operation.verb.rawValue)
      writer.name("path")
      writer.string(operation.path.map { "/" + Self.escaped($0) }.joined())
      if let value = operation.value {
        writer.name("value")
        writer.value(value)
      }
      writer.endObject()
    }
    writer.endArray()
    return Data(writer.bytes)
  }

  /// Reads the body of a PATCH.
  public init(jsonData: Data) throws(WireFormatError) { self = try Self.decode(jsonData) }

  /// Reads the body of a PATCH: JSON in UTF-8.
  package static func decode(
    _ body: some Collection<UInt8>
  ) throws(WireFormatError) -> InstallationPatch {
    guard case .array(let items) = try JSONValue.parse(body) else {
      throw .body("A patch must be a JSON array of operations.")
    }
    guard items.count <= maximumOperations else {
      throw .body("A patch may have at most \(maximumOperations) operations.")
    }
    var operations: [Operation] = []
    for item in items { operations.append(try operation(item)) }
    return InstallationPatch(operations)
  }

  private static func operation(_ item: JSONValue) throws(WireFormatError) -> Operation {
    guard case .string(let word)? = item["op"],
      let verb = Operation.Verb(rawValue: word.lowercased())
    else { throw .body("The 'op' of an operation must be add, remove or replace.") }
    guard case .string(let path)? = item["path"], path.utf8.first == UInt8(ascii: "/") else {
      throw .body("The 'path' of an operation must be a text that begins with '/'.")
    }
    // By bytes: a `/` that a combining mark follows is one character with it, and separates all the
    // same.
    let segments = path.utf8.split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
    ).dropFirst()
    return Operation(verb, segments.map { unescaped(Array($0)) }, item["value"])
  }

  /// RFC 6901: `~` is written `~0`, `/` is written `~1`.
  private static func escaped(_ segment: String) -> String {
    guard segment.utf8.contains(where: { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") })
    else { return segment }
    var bytes: [UInt8] = []
    for byte in segment.utf8 {
      switch byte {
      case UInt8(ascii: "~"): bytes += Array("~0".utf8)
      case UInt8(ascii: "/"): bytes += Array("~1".utf8)
      default: bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// A `~` before anything else stands for itself.
  private static func unescaped(_ segment: [UInt8]) -> String {
    var bytes: [UInt8] = []
    var place = 0
    while place < segment.count {
      let next = place + 1 < segment.count ? segment[place + 1] : 0
      if segment[place] == UInt8(ascii: "~"), next == UInt8(ascii: "0") || next == UInt8(ascii: "1")
      {
        bytes.append(next == UInt8(ascii: "0") ? UInt8(ascii: "~") : UInt8(ascii: "/"))
        place += 2
      } else {
        bytes.append(segment[place])
        place += 1
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
