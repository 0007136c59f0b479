import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads the JSON of installations, templates and tiles in one pass, as leniently as
/// ``JSONValue/parse(_:)``.
///
/// Names match in any case of their letters; the last member of a name counts, one that is `null` is
/// absent, and unknown ones are ignored. Faults of the syntax are reported before those of members,
/// and these in a fixed order: each is kept until the whole object is read.
struct InstallationReader {
  /// A value, or what is wrong with it.
  typealias Found<Value> = Result<Value, WireFormatError>
  /// The value of a member; `nil` if it is absent.
  typealias Member<Value> = Found<Value?>

  private var scanner: JSONScanner

  /// Reads a document.
  /// - Parameter body: Reads its one value.
  /// - Throws: The error of ``JSONValue/parse(_:)``, or what `body` found.
  static func read<Value>(
    _ text: [UInt8], _ body: (inout InstallationReader) throws(SyntaxFault) -> Found<Value>
  ) throws(WireFormatError) -> Value {
    let result = text.withUnsafeBufferPointer { bytes -> Found<Value> in
      do throws(SyntaxFault) {
        var reader = InstallationReader(
          scanner: JSONScanner(
            document: bytes, dialect: .lenient, depthLimit: JSONValue.depthLimit))
        let found = try body(&reader)
        try reader.scanner.finish()
        return found
      } catch {
        return .failure(.malformed(error))
      }
    }
    return try result.get()
  }

  static func template(in text: [UInt8]) throws(WireFormatError) -> PushTemplate {
    try read(text) { reader throws(SyntaxFault) in
      try reader.template(try reader.scanner.next())
    }
  }

  static func tile(in text: [UInt8]) throws(WireFormatError) -> SecondaryTile {
    try read(text) { reader throws(SyntaxFault) in try reader.tile(try reader.scanner.next()) }
  }

  // MARK: Objects

  mutating func installation(id: String?) throws(SyntaxFault) -> Found<Installation> {
    var (platform, own, user) = (
      Member<String>.success(nil), Member<String>.success(nil), Member<String>.success(nil)
    )
    var channel: JSONValue?
    var (expired, expiredAlias) = (Member<Bool>.success(nil), Member<Bool>.success(nil))
    var expirationTime = Member<Date>.success(nil)
    var tags = Member<[Tag]>.success(nil)
    var variables = Member<[String: String]>.success(nil)
    var templates = Member<[String: PushTemplate]>.success(nil)
    var tiles = Member<[String: SecondaryTile]>.success(nil)
    let token = try scanner.next()
    guard try beginsObject(token) else {
      return .failure(.body("An installation must be a JSON object."))
    }
    while let name = try nextName() {
      if matches(name, "platform") {
        platform = try text(of: "Platform")
      } else if matches(name, "installationId") {
        own = try text(of: "InstallationId")
      } else if matches(name, "pushChannel") {
        let value = try JSONValue(try scanner.next(), of: &scanner)
        channel = value == .null ? nil : value
      } else if matches(name, "userId") {
        user = try text(of: "UserId")
      } else if matches(name, "pushChannelExpired") {
        expired = try flag(of: "PushChannelExpired")
      } else if matches(name, "expiredPushChannel") {
        expiredAlias = try flag(of: "ExpiredPushChannel")
      } else if matches(name, "expirationTime") {
        expirationTime = try date(of: "ExpirationTime")
      } else if matches(name, "tags") {
        tags = try self.tags()
      } else if matches(name, "pushVariables") {
        variables = try texts(orElse: .wrong("PushVariables", "an object of texts"))
      } else if matches(name, "templates") {
        templates = try self.templates(orElse: .wrong("Templates", "an object"))
      } else if matches(name, "secondaryTiles") {
        tiles = try self.tiles(orElse: .wrong("SecondaryTiles", "an object"))
      } else {
        try skipValue()
      }
    }
    do throws(WireFormatError) {
      guard let word = try platform.get(), let platform = PushPlatform(installationWord: word)
      else {
        throw .body("'Platform' property is not specified or given value is not supported.")
      }
      let own = try own.get()
      if let id, let own, own != id, own.lowercased() != id.lowercased() {
        throw .body("'InstallationId' differs from the id in the address.")
      }
      guard let id = id ?? own else { throw .installation(["'InstallationId' is required."]) }
      guard let channel else { throw .installation(["'PushChannel' is required."]) }
      let (pushChannel, isText) = try PushChannel.decode(channel, platform: platform)
      var installation = Installation(
        installationID: id, platform: platform, pushChannel: pushChannel)
      installation.writesSubscriptionAsText = isText
      if let user = try user.get(), !user.isEmpty { installation.userID = user }
      installation.pushChannelExpired = try Self.isExpired(expired, expiredAlias)
      installation.expirationTime = try expirationTime.get()
      installation.tags = try tags.get() ?? []
      installation.pushVariables = try variables.get() ?? [:]
      installation.templates = try templates.get() ?? [:]
      installation.secondaryTiles = try tiles.get() ?? [:]
      return .success(installation)
    } catch {
      return .failure(error)
    }
  }

  /// The documentation uses the second name, the service the first.
  private static func isExpired(
    _ flag: Member<Bool>, _ alias: Member<Bool>
  ) throws(WireFormatError) -> Bool {
    if let flag = try flag.get() { return flag }
    return try alias.get() ?? false
  }

  private mutating func template(
    _ token: JSONScanner.Token
  ) throws(SyntaxFault) -> Found<PushTemplate> {
    var (body, bodyAlias, expiry) = (
      Member<String>.success(nil), Member<String>.success(nil), Member<String>.success(nil)
    )
    var headers = Member<[String: String]>.success(nil)
    var tags = Member<[Tag]>.success(nil)
    guard try beginsObject(token) else {
      return .failure(.body("An item of 'Templates' must be an object with a 'Body'."))
    }
    while let name = try nextName() {
      if matches(name, "body") {
        body = try text(of: "Body")
      } else if matches(name, "bodyTemplate") {
        bodyAlias = try text(of: "BodyTemplate")
      } else if matches(name, "headers") {
        headers = try texts(orElse: .wrong("Headers", "an object of texts"))
      } else if matches(name, "expiry") {
        expiry = try text(of: "Expiry")
      } else if matches(name, "tags") {
        tags = try self.tags()
      } else {
        try skipValue()
      }
    }
    do throws(WireFormatError) {
      // One sample in the documentation uses the second name.
      var text = try body.get()
      if text == nil { text = try bodyAlias.get() }
      return .success(
        PushTemplate(
          body: text ?? "", headers: try headers.get() ?? [:], expiry: try expiry.get(),
          tags: try tags.get() ?? []))
    } catch {
      return .failure(error)
    }
  }

  private mutating func tile(
    _ token: JSONScanner.Token
  ) throws(SyntaxFault) -> Found<SecondaryTile> {
    var channel = Member<String>.success(nil)
    var (expired, expiredAlias) = (Member<Bool>.success(nil), Member<Bool>.success(nil))
    var tags = Member<[Tag]>.success(nil)
    var templates = Member<[String: PushTemplate]>.success(nil)
    guard try beginsObject(token) else {
      return .failure(.body("An item of 'SecondaryTiles' must be an object with a 'PushChannel'."))
    }
    while let name = try nextName() {
      if matches(name, "pushChannel") {
        channel = try text(of: "PushChannel")
      } else if matches(name, "pushChannelExpired") {
        expired = try flag(of: "PushChannelExpired")
      } else if matches(name, "expiredPushChannel") {
        expiredAlias = try flag(of: "ExpiredPushChannel")
      } else if matches(name, "tags") {
        tags = try self.tags()
      } else if matches(name, "templates") {
        templates = try self.templates(orElse: .wrong("Templates", "an object"))
      } else {
        try skipValue()
      }
    }
    do throws(WireFormatError) {
      return .success(
        SecondaryTile(
          pushChannel: try channel.get() ?? "",
          pushChannelExpired: try Self.isExpired(expired, expiredAlias),
          tags: try tags.get() ?? [], templates: try templates.get() ?? [:]))
    } catch {
      return .failure(error)
    }
  }

  // MARK: Members

  /// Templates by name; those that are `null` count as absent.
  mutating func templates(
    orElse fault: @autoclosure () -> WireFormatError
  ) throws(SyntaxFault) -> Member<[String: PushTemplate]> {
    try items(orElse: fault()) { reader, token throws(SyntaxFault) in try reader.template(token) }
  }

  /// Tiles by id; those that are `null` count as absent.
  mutating func tiles(
    orElse fault: @autoclosure () -> WireFormatError
  ) throws(SyntaxFault) -> Member<[String: SecondaryTile]> {
    try items(orElse: fault()) { reader, token throws(SyntaxFault) in try reader.tile(token) }
  }

  private mutating func items<Value>(
    orElse fault: @autoclosure () -> WireFormatError,
    _ item: (inout InstallationReader, JSONScanner.Token) throws(SyntaxFault) -> Found<Value>
  ) throws(SyntaxFault) -> Member<[String: Value]> {
    var items: [String: Value] = [:]
    var first: WireFormatError?
    let token = try scanner.next()
    if case .null = token { return .success(nil) }
    guard try beginsObject(token) else {
      return .failure(fault())
    }
    while let key = try scanner.nextMember() {
      let name = try scanner.string(key)
      let token = try scanner.next()
      if case .null = token { continue }
      switch try item(&self, token) {
      case .success(let value): items[name] = value
      case .failure(let error): first = first ?? error
      }
    }
    if let first { return .failure(first) }
    return .success(items)
  }

  /// An object's members that are texts, numbers or flags.
  mutating func texts(
    orElse fault: @autoclosure () -> WireFormatError
  ) throws(SyntaxFault) -> Member<[String: String]> {
    var texts: [String: String] = [:]
    var isFit = true
    let token = try scanner.next()
    if case .null = token { return .success(nil) }
    guard try beginsObject(token) else {
      return .failure(fault())
    }
    while let key = try scanner.nextMember() {
      let name = try scanner.string(key)
      let token = try scanner.next()
      if case .null = token { continue }
      if let text = try scalar(token) { texts[name] = text } else { isFit = false }
    }
    return isFit ? .success(texts) : .failure(fault())
  }

  private mutating func tags() throws(SyntaxFault) -> Member<[Tag]> {
    var tags: [Tag] = []
    var isFit = true
    let token = try scanner.next()
    if case .null = token { return .success(nil) }
    guard case .arrayStart = token else {
      try scanner.skip(token)
      return .failure(Self.unfitTags)
    }
    while true {
      let token = try scanner.next()
      switch token {
      case .arrayEnd: return isFit ? .success(tags) : .failure(Self.unfitTags)
      case .string(let text):
        if tags.isEmpty { tags.reserveCapacity(8) }
        tags.append(Tag(rawValue: try scanner.string(text)))
      default:
        try scanner.skip(token)
        isFit = false
      }
    }
  }

  private static let unfitTags = WireFormatError.wrong("Tags", "an array of texts")

  private mutating func text(of name: StaticString) throws(SyntaxFault) -> Member<String> {
    let token = try scanner.next()
    if case .null = token { return .success(nil) }
    if let text = try scalar(token) { return .success(text) }
    return .failure(.wrong(name, "a text"))
  }

  private mutating func flag(of name: StaticString) throws(SyntaxFault) -> Member<Bool> {
    let token = try scanner.next()
    if case .null = token { return .success(nil) }
    switch try scalar(token)?.lowercased() {
    case "true": return .success(true)
    case "false": return .success(false)
    default: return .failure(.wrong(name, "true or false"))
    }
  }

  private mutating func date(of name: StaticString) throws(SyntaxFault) -> Member<Date> {
    let token = try scanner.next()
    if case .null = token { return .success(nil) }
    guard case .string(let text) = token else {
      try scanner.skip(token)
      return .failure(.wrong(name, Self.dateForm))
    }
    let words = try scanner.string(text)
    // Clients without a date write an empty text.
    if words.trimmingBlanks.isEmpty { return .success(nil) }
    guard let date = WireDate.parse(words) else { return .failure(.wrong(name, Self.dateForm)) }
    return .success(WireDate.isNever(date) ? nil : date)
  }

  private static let dateForm = "a date such as 2030-10-01T10:00:00Z"

  /// The value that a token begins as text: strings unchanged, numbers and flags as written; `nil`
  /// for objects and arrays, which are skipped.
  private mutating func scalar(_ token: JSONScanner.Token) throws(SyntaxFault) -> String? {
    switch token {
    case .string(let text): return try scanner.string(text)
    case .number(let range): return String(decoding: scanner.bytes[range], as: UTF8.self)
    case .bool(let flag): return flag ? "true" : "false"
    default:
      try scanner.skip(token)
      return nil
    }
  }

  /// Whether the token begins an object; any other value is skipped.
  private mutating func beginsObject(_ token: JSONScanner.Token) throws(SyntaxFault) -> Bool {
    if case .objectStart = token { return true }
    try scanner.skip(token)
    return false
  }

  // MARK: Names

  private mutating func nextName() throws(SyntaxFault) -> JSONScanner.Text? {
    guard let name = try scanner.nextMember() else { return nil }
    // Of unknown members, too, whose names are not read otherwise.
    try scanner.checkUTF8(name)
    return name
  }

  private mutating func skipValue() throws(SyntaxFault) { try scanner.skip(try scanner.next()) }

  /// - Parameter word: In ASCII.
  private func matches(_ name: JSONScanner.Text, _ word: StaticString) -> Bool {
    // The scanner looks again; here it saves the call for names of another length.
    guard name.hasEscapes || name.range.count == word.utf8CodeUnitCount else { return false }
    return scanner.matchesIgnoringCase(name, word)
  }
}

extension WireFormatError {
  fileprivate static func wrong(_ name: StaticString, _ expected: String) -> WireFormatError {
    .body("'\(name)' must be \(expected).")
  }
}
