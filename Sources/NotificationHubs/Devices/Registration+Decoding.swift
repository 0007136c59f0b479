import Wire

extension Registration {
  /// The sentence of the service for a description that it cannot take.
  package static let invalidDescription = WireFormatError(
    "The specified resource description is invalid.")

  /// Reads the body of a POST or PUT in every form that clients send, and checks it
  /// (spec `rest-api.md` 3.2, 3.11). What the hub owns is absent from the result, whatever the body
  /// says. Expressions in templates are not checked here.
  ///
  /// - Throws: ``WireFormatError`` with the text of a 400.
  package static func decodeRequest(
    _ body: some Collection<UInt8>
  ) throws(WireFormatError) -> Registration {
    var registration = try decode(body)
    registration.registrationID = nil
    registration.etag = nil
    registration.expirationTime = nil
    return try registration.validated()
  }

  /// Reads one description, in an entry or bare, as a hub returns it or as a line of a job's file
  /// holds it; only what it says is not checked.
  package static func decode(
    _ document: some Collection<UInt8>
  ) throws(WireFormatError) -> Registration {
    guard let payload = AtomReader.payload(document) else { throw invalidDescription }
    return try Registration(payload)
  }

  /// Reads a page of a list.
  package static func decodeFeed(
    _ document: some Collection<UInt8>
  ) throws(WireFormatError) -> [Registration] {
    guard let entries = AtomReader.entries(document) else {
      throw WireFormatError("The reply is no feed of registrations.")
    }
    var page: [Registration] = []
    page.reserveCapacity(entries.count)
    for entry in entries {
      guard let payload = AtomReader.payload(entry) else { throw invalidDescription }
      page.append(try Registration(payload))
    }
    return page
  }

  private init(_ payload: XMLNode) throws(WireFormatError) {
    // .NET names the abstract type and gives the concrete one as an attribute.
    var name = payload.name
    if name == RegistrationElement.native, let type = payload.attribute("type") {
      name = (String(type.split(separator: ":").last ?? "")).trimmingBlanks
    }
    guard let root = RegistrationElement.roots[name] else { throw Self.invalidDescription }
    self.init(
      platform: root.platform, channel: try Self.channel(payload, root.platform),
      kind: root.isTemplate ? try Self.template(payload, root.platform) : .native,
      tags: try Self.tags(payload), pushVariables: try Self.variables(payload),
      secondaryTileName: payload.word(RegistrationElement.secondaryTileName),
      registrationID: payload.word(RegistrationElement.registrationID),
      etag: payload.word(RegistrationElement.etag),
      expirationTime: AtomReader.date(payload.word(RegistrationElement.expirationTime)))
  }

  private static func channel(
    _ payload: XMLNode, _ platform: PushPlatform
  ) throws(WireFormatError) -> PushChannel {
    let parts = RegistrationElement.handles(platform).compactMap(payload.word)
    switch platform {
    case .baidu where parts.count == 2:
      return .baidu(userID: parts[0], channelID: parts[1])
    case .browser where parts.count == 3:
      return .subscription(endpoint: parts[0], p256dh: parts[1], auth: parts[2])
    case .baidu, .browser: throw invalidDescription
    default:
      guard let handle = parts.first else { throw invalidDescription }
      return .handle(handle)
    }
  }

  /// The items as they stand; an empty list is none.
  private static func tags(_ payload: XMLNode) throws(WireFormatError) -> [Tag] {
    guard let text = payload.word(RegistrationElement.tags) else { return [] }
    let tags = text.split(separator: ",", omittingEmptySubsequences: false).map {
      Tag(rawValue: $0.trimmingBlanks)
    }
    guard !tags.contains(where: \.rawValue.isEmpty) else { throw Tag.invalid(text) }
    return tags
  }

  private static func variables(_ payload: XMLNode) throws(WireFormatError) -> [String: String] {
    guard let text = payload.word(RegistrationElement.pushVariables) else { return [:] }
    guard let value = try? JSONValue.parse(text.utf8), let map = InstallationMembers.map(value)
    else { throw WireFormatError("'PushVariables' must be a JSON object of texts.") }
    return map
  }

  private static func template(
    _ payload: XMLNode, _ platform: PushPlatform
  ) throws(WireFormatError) -> Kind {
    guard let body = payload.value(RegistrationElement.bodyTemplate),
      !body.trimmingBlanks.isEmpty
    else { throw invalidDescription }
    var template = PushTemplate(body: body)
    if let item = RegistrationElement.header(platform), let list = payload["\(item)s"] {
      for header in list.children where header.name == item {
        guard let name = header.word("Header") else { throw invalidDescription }
        template.headers[name] = (header.value("Value") ?? "").trimmingBlanks
      }
    }
    if platform == .apns {
      template.expiry = payload.word(RegistrationElement.expiry)
      if let priority = payload.word(RegistrationElement.priority) {
        template.applePriority = priority
      }
    }
    if platform == .baidu {
      template.baiduMessageType = payload.word(RegistrationElement.messageType)
    }
    let name = payload.value(RegistrationElement.templateName) ?? ""
    return .template(template, name: name.isEmpty ? nil : name)
  }
}
