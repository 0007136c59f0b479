import Wire

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

extension Registration {
  /// The documents that hold a registration; they differ in how a time without end is written and in
  /// who owns the members.
  package enum Form: Sendable {
    /// What a client sends: without what the hub owns.
    case request
    /// The reply to POST and PUT.
    case written
    /// The reply to GET, entries of feeds, lines of export files.
    case read
  }

  /// The entry with which a hub answers (spec `rest-api.md` 3.3).
  ///
  /// - Parameters:
  ///   - address: That of the registration itself, with the request's query.
  ///   - now: The time of the reply.
  package func entryXML(address: AtomAddress, form: Form, now: Date) -> String {
    AtomWriter.entry(entry(address: address, form: form, now: now))
  }

  /// One page of a list (spec `rest-api.md` 3.9).
  ///
  /// - Parameters:
  ///   - address: That of the list as it was asked for.
  ///   - next: The token of the next page; `nil` on the last one. The same text goes into the
  ///     header `x-ms-continuationtoken`.
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

  /// The entry that a client sends.
  package var requestXML: String { AtomWriter.request(descriptionXML(form: .request)) }

  /// The payload element alone, on one line: also the line of a job's file (spec section 7).
  ///
  /// With ``Form/request`` the line of an import file still carries the ids that it names.
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

  /// The line of a file that a job imports: with the id, and for updates the etag, inside.
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

  /// The texts of the elements that hold the handle, in their order.
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
    // Left out when there is none: the nil form of the service confuses a client (spec 3.3).
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
