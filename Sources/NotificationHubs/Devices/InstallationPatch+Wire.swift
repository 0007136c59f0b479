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
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    return Operation(verb, segments.map(unescaped), item["value"])
  }

  /// RFC 6901: `~` is written `~0`, `/` is written `~1`.
  private static func escaped(_ segment: String) -> String {
    guard segment.utf8.contains(where: { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") })
    else { return segment }
    return segment.split(separator: "~", omittingEmptySubsequences: false).joined(separator: "~0")
      .split(separator: "/", omittingEmptySubsequences: false).joined(separator: "~1")
  }

  private static func unescaped(_ segment: Substring) -> String {
    guard segment.utf8.contains(UInt8(ascii: "~")) else { return String(segment) }
    return segment.split(separator: "~1", omittingEmptySubsequences: false).joined(separator: "/")
      .split(separator: "~0", omittingEmptySubsequences: false).joined(separator: "~")
  }
}
