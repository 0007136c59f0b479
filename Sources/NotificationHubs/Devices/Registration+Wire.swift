import Wire

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The names of the payload elements, shared by client and server (docs/protocol/rest.md, section
/// 3.1).
enum RegistrationElement {
  static let native = "RegistrationDescription"
  static let template = "TemplateRegistrationDescription"

  static let etag = "ETag"
  static let expirationTime = "ExpirationTime"
  static let registrationID = "RegistrationId"
  static let tags = "Tags"
  static let pushVariables = "PushVariables"

  static let deviceToken = "DeviceToken"
  static let channelURI = "ChannelUri"
  static let secondaryTileName = "SecondaryTileName"
  static let baiduUserID = "BaiduUserId"
  static let baiduChannelID = "BaiduChannelId"
  static let endpoint = "Endpoint"
  static let p256dh = "P256DH"
  static let auth = "Auth"

  static let bodyTemplate = "BodyTemplate"
  static let expiry = "Expiry"
  static let templateName = "TemplateName"
  static let priority = "Priority"
  static let messageType = "MessageType"

  /// The payload elements by name.
  static let roots: [String: (platform: PushPlatform, isTemplate: Bool)] = Dictionary(
    uniqueKeysWithValues: PushPlatform.allCases.flatMap { platform in
      [
        (platform.registrationPrefix + native, (platform, false)),
        (platform.registrationPrefix + template, (platform, true)),
      ]
    })

  /// The one to three elements that hold the handle.
  static func handles(_ platform: PushPlatform) -> [String] {
    platform.traits.handleElements ?? ["\(platform.registrationPrefix)RegistrationId"]
  }

  /// The element of a template header, such as `WnsHeader`; its list element appends an `s`.
  static func header(_ platform: PushPlatform) -> String? {
    platform.traits.hasTemplateHeaders ? "\(platform.telemetryPrefix)Header" : nil
  }
}

extension Registration {
  /// The documents that contain a registration. They differ in how they write an unlimited
  /// expiration time and in which side sets the members.
  package enum Form: Sendable {
    /// A client's request, without the members that the hub sets.
    case request
    /// The reply to POST and PUT.
    case written
    /// The reply to GET, entries of feeds, and lines of export files.
    case read
  }

  /// The entry in a hub's reply (docs/protocol/rest.md, section 3.3).
  ///
  /// - Parameters:
  ///   - address: The URL of the registration itself, with the request's query.
  ///   - now: The time of the reply.
  package func entryXML(address: AtomAddress, form: Form, now: Date) -> String {
    AtomWriter.entry(entry(address: address, form: form, now: now))
  }

  /// One page of a list (docs/protocol/rest.md, section 3.9).
  ///
  /// - Parameters:
  ///   - address: The URL of the list as requested.
  ///   - next: The continuation token; `nil` on the last page. The header `x-ms-continuationtoken`
  ///     has the same text.
  package static func feedXML(
    _ page: [Registration], address: AtomAddress, next: String? = nil, now: Date
  ) -> String {
    AtomWriter.feed(
      title: "Registrations", address: address, next: next.map(address.next(token:)), updated: now,
      entries: page.map {
        $0.entry(address: address.appending($0.registrationID ?? ""), form: .read, now: now)
      })
  }

  private func entry(address: AtomAddress, form: Form, now: Date) -> AtomWriter.Entry {
    AtomWriter.Entry(
      address: address.text, title: registrationID ?? "", etag: etag ?? "1", published: now,
      updated: now, author: nil, payload: descriptionXML(form: form))
  }

  /// The entry in a client's request.
  package var requestXML: String { AtomWriter.request(descriptionXML(form: .request)) }

  /// The payload element alone, on one line, which is also a line of a job's file
  /// (docs/protocol/rest.md, section 7).
  ///
  /// With ``Form/request``, a line of an import file still contains the ids that it names.
  package func descriptionXML(form: Form) -> String {
    var names = platform.registrationPrefix
    names += template == nil ? RegistrationElement.native : RegistrationElement.template
    var text = AtomWriter.open(names)
    if form != .request {
      text.appendElement(RegistrationElement.etag, etag ?? "1")
      text.appendElement(RegistrationElement.expirationTime, expirationText(form))
      text.appendElement(RegistrationElement.registrationID, registrationID)
    }
    appendDevice(to: &text)
    if case .template(let template, let name) = kind { append(template, name, to: &text) }
    return text + "</\(names)>"
  }

  /// The line of a job's import file, with the id and, for updates, the etag.
  package var importLine: String {
    var text = descriptionXML(form: .request)
    guard let end = text.firstIndex(of: ">") else { return text }
    var members = ""
    members.appendElement(RegistrationElement.etag, etag)
    members.appendElement(RegistrationElement.registrationID, registrationID)
    text.insert(contentsOf: members, at: text.index(after: end))
    return text
  }

  private func expirationText(_ form: Form) -> String {
    guard let expirationTime, !WireDate.isNever(expirationTime) else {
      if isFromInstallation { return WireDate.never }
      return "9999-12-31T23:59:59.999" + (form == .read ? "Z" : "")
    }
    return isFromInstallation
      ? WireDate.precise(expirationTime) : WireDate.milliseconds(expirationTime)
  }

  private func appendDevice(to text: inout String) {
    if !tags.isEmpty {
      text.appendElement(
        RegistrationElement.tags, tags.map(\.rawValue).joined(separator: ","))
    }
    if !pushVariables.isEmpty {
      var writer = JSONWriter()
      writer.map(pushVariables)
      text.appendElement(
        RegistrationElement.pushVariables, String(decoding: writer.bytes, as: UTF8.self))
    }
    for (name, part) in zip(RegistrationElement.handles(platform), handleParts) {
      text.appendElement(name, part)
    }
    if platform == .wns || platform == .mpns {
      text.appendElement(RegistrationElement.secondaryTileName, secondaryTileName)
    }
  }

  /// The texts of the elements that hold the handle, in order.
  private var handleParts: [String] {
    switch (platform, channel) {
    case (.browser, .subscription(let endpoint, let p256dh, let auth)): [endpoint, p256dh, auth]
    case (.baidu, _):
      channel.baiduIDs.map { [$0.userID, $0.channelID] } ?? ["", channel.handle]
    default: [channel.handle]
    }
  }

  private func append(_ template: PushTemplate, _ name: String?, to text: inout String) {
    text += "<\(RegistrationElement.bodyTemplate)>\(template.body.xmlCharacterData)"
    text += "</\(RegistrationElement.bodyTemplate)>"
    if platform == .apns {
      if let expiry = template.expiry {
        text.appendElement(RegistrationElement.expiry, expiry)
      } else {
        text += "<\(RegistrationElement.expiry) i:nil=\"true\"/>"
      }
    } else {
      appendHeaders(template, to: &text)
    }
    // Left out if there is none: the service's nil form breaks a client (docs/protocol/rest.md,
    // section 3.3).
    text.appendElement(RegistrationElement.templateName, name)
    if platform == .baidu {
      text.appendElement(RegistrationElement.messageType, template.baiduMessageType)
    }
    if platform == .apns {
      text.appendElement(RegistrationElement.priority, template.applePriority)
      appendHeaders(template, to: &text)
    }
  }

  private func appendHeaders(_ template: PushTemplate, to text: inout String) {
    guard let item = RegistrationElement.header(platform) else { return }
    let separate = WireName.olderApnsPriority.lowercased()
    let headers = template.headers.map { ($0.key.lowercased(), $0.key, $0.value) }
      .filter { platform != .apns || $0.0 != separate }.sorted { ($0.0, $0.1) < ($1.0, $1.1) }
    guard !headers.isEmpty else {
      text += "<\(item)s/>"
      return
    }
    text += "<\(item)s>"
    for (_, name, value) in headers {
      text += "<\(item)>"
      text.appendElement("Header", name)
      text.appendElement("Value", value)
      text += "</\(item)>"
    }
    text += "</\(item)s>"
  }
}

extension Registration {
  /// The service's error for an invalid description.
  package static let invalidDescription = WireFormatError(
    "The specified resource description is invalid.")

  /// Decodes and validates the body of a POST or PUT in every form that clients send
  /// (docs/protocol/rest.md, sections 3.2 and 3.11). Members that the hub sets are absent from the
  /// result, whatever the body says. Template expressions are not checked here.
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

  /// Decodes one description, in an entry or bare, from a hub's reply or a line of a job's file,
  /// without validating its values.
  package static func decode(
    _ document: some Collection<UInt8>
  ) throws(WireFormatError) -> Registration {
    guard let payload = AtomReader.payload(document) else { throw invalidDescription }
    return try Registration(payload)
  }

  /// Decodes one page of a list.
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
    // The .NET client names the abstract type and gives the concrete one as an attribute.
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

  /// The items as given; an empty list means no tags.
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
    let fault = WireFormatError("'PushVariables' must be a JSON object of texts.")
    let map = try? InstallationReader.read(Array(text.utf8)) { reader throws(SyntaxFault) in
      try reader.texts(orElse: fault)
    }
    guard let map else { throw fault }
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
