package import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Changes to an installation that leave the rest of it unchanged (docs/protocol/rest.md, section
/// 4.4).
///
/// Operations apply in order; either all of them apply, or none.
///
/// ```swift
/// try await client.patch(
///   installation: id, [.addTag("news"), .removeTag("beta"), .setUserID("u-17")])
/// ```
public struct InstallationPatch: Hashable, Sendable, ExpressibleByArrayLiteral {
  /// The operations in the order in which they apply.
  public var operations: [Operation]

  /// Creates a patch of these operations.
  public init(_ operations: [Operation]) { self.operations = operations }
  /// Creates a patch from an array literal of operations.
  public init(arrayLiteral elements: Operation...) { self.init(elements) }

  /// One change at one path.
  public struct Operation: Hashable, Sendable {
    package enum Verb: String, Hashable, Sendable {
      case add, remove, replace
    }

    package let verb: Verb
    /// The unescaped segments of the path.
    package let path: [String]
    /// A plain text or JSON; for objects and arrays the two forms are equivalent.
    package let value: JSONValue?

    package init(_ verb: Verb, _ path: [String], _ value: JSONValue? = nil) {
      self.verb = verb
      self.path = path
      self.value = value
    }
  }
}

extension InstallationPatch.Operation {
  /// Adds a tag; has no effect if it is present.
  public static func addTag(_ tag: Tag) -> Self { Self(.add, ["tags"], .string(tag.rawValue)) }

  /// Removes a tag; has no effect if it is absent.
  public static func removeTag(_ tag: Tag) -> Self { Self(.remove, ["tags", tag.rawValue]) }

  /// Replaces all tags.
  public static func setTags(_ tags: [Tag]) -> Self {
    guard !tags.isEmpty else { return Self(.remove, ["tags"]) }
    return Self(.replace, ["tags"], .json(.array(tags.map { .string($0.rawValue) })))
  }

  /// Sets the signed-in user; `nil` removes it.
  public static func setUserID(_ userID: String?) -> Self {
    guard let userID else { return Self(.remove, ["userId"]) }
    return Self(.replace, ["userId"], .string(userID))
  }

  /// Replaces the push channel; the hub then treats it as alive.
  public static func setPushChannel(_ channel: PushChannel) -> Self {
    switch channel {
    case .handle(let text): Self(.replace, ["pushChannel"], .string(text))
    case .subscription(let endpoint, let p256dh, let auth):
      Self(
        .replace, ["pushChannel"],
        .json(PushChannel.subscriptionJSON(endpoint: endpoint, p256dh: p256dh, auth: auth)))
    }
  }

  /// Replaces all push variables.
  public static func setPushVariables(_ variables: [String: String]) -> Self {
    guard !variables.isEmpty else { return Self(.remove, ["pushVariables"]) }
    let members = variables.sorted { $0.key < $1.key }
      .map { JSONValue.Member($0.key, .string($0.value)) }
    return Self(.replace, ["pushVariables"], .json(.object(members)))
  }

  /// Creates a template, or replaces the one with that name.
  public static func setTemplate(_ name: String, _ template: PushTemplate) -> Self {
    Self(.replace, ["templates", name], .string(template.jsonText))
  }

  /// Replaces the body of an existing template.
  public static func setTemplateBody(_ name: String, _ body: String) -> Self {
    Self(.replace, ["templates", name, "body"], .string(body))
  }

  /// Removes a template.
  public static func removeTemplate(_ name: String) -> Self { Self(.remove, ["templates", name]) }

  /// Creates a secondary tile, or replaces the one with that id.
  public static func setSecondaryTile(_ id: String, _ tile: SecondaryTile) -> Self {
    Self(.replace, ["secondaryTiles", id], .string(tile.jsonText))
  }

  /// Removes a secondary tile.
  public static func removeSecondaryTile(_ id: String) -> Self {
    Self(.remove, ["secondaryTiles", id])
  }
}

extension JSONValue {
  /// JSON as text, the form in which patches contain objects and arrays.
  fileprivate static func json(_ value: JSONValue) -> JSONValue {
    .string(value.jsonText)
  }
}

extension InstallationPatch {
  /// The maximum number of operations in a patch.
  package static let maximumOperations = 1_000

  /// The JSON to send to a hub: an array of `{op, path, value}`.
  public var jsonData: Data {
    var writer = JSONWriter()
    writer.beginArray()
    for operation in operations {
      writer.object { writer in
        writer.member("op", operation.verb.rawValue)
        writer.member("path", operation.path.map { "/" + Self.escaped($0) }.joined())
        if let value = operation.value {
          writer.name("value")
          writer.value(value)
        }
      }
    }
    writer.endArray()
    return Data(writer.bytes)
  }

  /// Decodes the body of a PATCH.
  ///
  /// - Throws: ``WireFormatError`` if the data is not a patch.
  public init(jsonData: Data) throws(WireFormatError) { self = try Self.decode(jsonData) }

  /// Decodes the body of a PATCH: JSON in UTF-8.
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
    // Splits bytes: a `/` followed by a combining mark is one character with it, but still
    // separates segments.
    let segments = path.utf8.split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
    ).dropFirst()
    return Operation(verb, segments.map { unescaped(Array($0)) }, item["value"])
  }

  /// Escapes a segment by RFC 6901: `~` becomes `~0`, `/` becomes `~1`.
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

  /// Unescapes a segment; a `~` before any other character is literal.
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

extension InstallationPatch {
  /// Returns the installation with all operations applied in order, validated like
  /// ``Installation/validated()``. If this throws, the hub replies with 400 and the error's text,
  /// and nothing has changed.
  package func applied(
    to installation: Installation
  ) throws(WireFormatError) -> Installation {
    try changing(installation).validated()
  }

  /// Same as ``applied(to:)`` without validating the result.
  package func changing(
    _ installation: Installation
  ) throws(WireFormatError) -> Installation {
    var result = installation
    for operation in operations { try operation.apply(to: &result) }
    return result
  }
}

extension InstallationPatch.Operation {
  private var isRemoval: Bool { verb == .remove }

  fileprivate func apply(to installation: inout Installation) throws(WireFormatError) {
    switch (path[0].lowercased(), path.count) {
    case ("pushchannel", 1):
      guard !isRemoval else { throw fault("'PushChannel' cannot be removed") }
      let (channel, isText) = try PushChannel.decode(
        try given(), platform: installation.platform)
      installation.pushChannel = channel
      installation.pushChannelExpired = false
      installation.writesSubscriptionAsText = isText
    case ("userid", 1):
      let userID = isRemoval ? nil : try text()
      installation.userID = userID == "" ? nil : userID
    case ("tags", 1...2): try apply(to: &installation.tags, at: path.dropFirst())
    case ("pushvariables", 1): installation.pushVariables = isRemoval ? [:] : try map()
    case ("pushvariables", 2):
      installation.pushVariables[path[1]] = isRemoval ? nil : try text()
    case ("templates", _): try apply(to: &installation.templates, at: path.dropFirst())
    case ("secondarytiles", 1):
      if verb != .add { installation.secondaryTiles = [:] }
      guard !isRemoval else { return }
      let tiles = try object { reader, fault throws(SyntaxFault) in
        try reader.tiles(orElse: fault)
      }
      installation.secondaryTiles.merge(tiles.mapValues(\.asRequested)) { $1 }
    case ("secondarytiles", 2...): try apply(to: &installation.secondaryTiles)
    default: throw unknownPath
    }
  }

  private func apply(to tiles: inout [String: SecondaryTile]) throws(WireFormatError) {
    let name = path[1]
    if path.count == 2 {
      tiles[name] = isRemoval ? nil : try InstallationReader.tile(in: try structure()).asRequested
      return
    }
    guard var tile = tiles[name] else { throw fault("there is no such secondary tile") }
    let rest = path.dropFirst(2)
    switch (path[2].lowercased(), rest.count) {
    case ("pushchannel", 1):
      guard !isRemoval else { throw fault("'PushChannel' cannot be removed") }
      tile.pushChannel = try text()
      tile.pushChannelExpired = false
    case ("tags", 1...2): try apply(to: &tile.tags, at: rest.dropFirst())
    case ("templates", _): try apply(to: &tile.templates, at: rest.dropFirst())
    default: throw unknownPath
    }
    tiles[name] = tile
  }

  /// Changes the template that `rest` starts with the name of, or all templates if `rest` is empty.
  private func apply(
    to templates: inout [String: PushTemplate], at rest: ArraySlice<String>
  ) throws(WireFormatError) {
    guard let name = rest.first else {
      // As with all tags, `add` never removes anything.
      if verb != .add { templates = [:] }
      guard !isRemoval else { return }
      let given = try object { reader, fault throws(SyntaxFault) in
        try reader.templates(orElse: fault)
      }
      templates.merge(given) { $1 }
      return
    }
    guard let part = rest.dropFirst().first else {
      templates[name] = isRemoval ? nil : try InstallationReader.template(in: try structure())
      return
    }
    guard var template = templates[name] else { throw fault("there is no such template") }
    switch (part.lowercased(), rest.count) {
    case ("body", 2):
      guard !isRemoval else { throw fault("'Body' cannot be removed") }
      template.body = try text()
    case ("expiry", 2): template.expiry = isRemoval ? nil : try text()
    case ("headers", 2): template.headers = isRemoval ? [:] : try map()
    case ("tags", 2...3): try apply(to: &template.tags, at: rest.dropFirst(2))
    default: throw unknownPath
    }
    templates[name] = template
  }

  /// Changes the whole list if `rest` is empty, otherwise the tag that `rest` names.
  private func apply(
    to tags: inout [Tag], at rest: ArraySlice<String>
  ) throws(WireFormatError) {
    if let name = rest.first {
      let tag = Tag(rawValue: name)
      if isRemoval {
        tags.removeAll { $0 == tag }
      } else if !tags.contains(tag) {
        tags.append(tag)
      }
      return
    }
    if verb != .add { tags = [] }
    guard !isRemoval else { return }
    for tag in try givenTags() where !tags.contains(tag) {
      // Stops well before the quadratic search becomes slow; the exact limit is checked at the end.
      guard tags.count < 10 * Tag.maximumCount else { throw fault("too many tags") }
      tags.append(tag)
    }
  }

  private func givenTags() throws(WireFormatError) -> [Tag] {
    var value = try given()
    if case .string(let text) = value {
      guard text.trimmingBlanks.utf8.first == UInt8(ascii: "[") else {
        return [Tag(rawValue: text)]
      }
      value = try JSONValue.parse(text.utf8)
    }
    var tags: [Tag] = []
    let fault = fault("the value must be a tag or an array of tags")
    guard case .array(let items) = value else { throw fault }
    for item in items {
      guard case .string(let text) = item else { throw fault }
      tags.append(Tag(rawValue: text))
    }
    return tags
  }

  private func given() throws(WireFormatError) -> JSONValue {
    guard let value else { throw fault("the value is missing") }
    return value
  }

  private func text() throws(WireFormatError) -> String {
    guard let text = try given().scalarText else { throw fault("the value must be a text") }
    return text
  }

  /// The JSON of the value, or the one that its text contains.
  private func structure() throws(WireFormatError) -> [UInt8] {
    let value = try given()
    guard case .string(let text) = value else { return value.jsonBytes }
    return Array(text.utf8)
  }

  private func object<Value>(
    _ kind: String = "an object",
    _ read: (inout InstallationReader, WireFormatError) throws(SyntaxFault) ->
      InstallationReader.Member<Value>
  ) throws(WireFormatError) -> Value {
    let fault = fault("the value must be \(kind)")
    let value = try InstallationReader.read(try structure()) { reader throws(SyntaxFault) in
      try read(&reader, fault)
    }
    guard let value else { throw fault }
    return value
  }

  private func map() throws(WireFormatError) -> [String: String] {
    try object("an object of texts") { reader, fault throws(SyntaxFault) in
      try reader.texts(orElse: fault)
    }
  }

  private var unknownPath: WireFormatError { fault("the path is not known") }

  private func fault(_ what: String) -> WireFormatError {
    .body("Operation '\(verb.rawValue)' on '/\(path.joined(separator: "/"))': \(what).")
  }
}
