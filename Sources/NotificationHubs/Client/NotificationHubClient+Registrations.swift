import Foundation

extension NotificationHubClient {
  /// Makes a new registration, even for a device that has one already.
  /// - Returns: The registration as the hub keeps it, with its id and etag.
  public func create(_ registration: Registration) async throws -> Registration {
    try await written("POST", ["registrations"], registration, ifMatch: nil)
  }

  /// Reserves an id for ``createOrUpdate(_:)``, so that a device can keep it and write its
  /// registration as often as it likes.
  public func createRegistrationID() async throws -> String {
    let reply = try await perform("POST", ["registrationids"])
    guard let location = reply.header(WireName.location).flatMap({ URL(string: $0) }),
      !location.lastPathComponent.isEmpty, location.lastPathComponent != "/"
    else {
      throw NotificationHubError(
        kind: .unexpectedReply, status: reply.status, detail: "the reply names no registration id",
        trackingID: reply.header(WireName.trackingID))
    }
    return location.lastPathComponent
  }

  /// Writes the registration with its `registrationID`, whether it exists or not.
  public func createOrUpdate(_ registration: Registration) async throws -> Registration {
    try await written(
      "PUT", ["registrations", try id(of: registration)], registration, ifMatch: nil)
  }

  /// Writes the registration with its `registrationID` if it exists and still has its `etag`; an
  /// etag of `nil` stands for any.
  ///
  /// - Throws: ``NotificationHubError`` of the kind `preconditionFailed` when it has changed.
  public func update(_ registration: Registration) async throws -> Registration {
    try await written(
      "PUT", ["registrations", try id(of: registration)], registration,
      ifMatch: Self.condition(registration.etag))
  }

  /// Reads a registration.
  ///
  /// - Throws: ``NotificationHubError`` of the kind `notFound` when there is none.
  public func registration(_ registrationID: String) async throws -> Registration {
    let reply = try await perform("GET", ["registrations", registrationID])
    return try reply.read { (body) throws(WireFormatError) in try Registration.decode(body) }
  }

  /// Deletes a registration.
  /// - Parameter etag: If given, only while the registration still has it.
  public func delete(registration registrationID: String, etag: String? = nil) async throws {
    _ = try await perform(
      "DELETE", ["registrations", registrationID],
      headers: [WireName.ifMatch: Self.condition(etag)])
  }

  /// Every registration of the hub, read page by page.
  /// - Parameter pageSize: The most registrations of one page, 1 to 100.
  public func registrations(pageSize: Int? = nil) -> PagedList<Registration> {
    list(["registrations"], filter: nil, pageSize)
  }

  /// The registrations with a tag, read page by page.
  public func registrations(tag: Tag, pageSize: Int? = nil) -> PagedList<Registration> {
    list(["tags", tag.rawValue, "registrations"], filter: nil, pageSize)
  }

  /// The registrations of a device, native and template, read page by page.
  public func registrations(
    channel: PushChannel, pageSize: Int? = nil
  ) -> PagedList<Registration> {
    list(["registrations"], filter: RegistrationFilter.text(channel), pageSize)
  }

  /// Deletes every registration of a device.
  public func deleteRegistrations(channel: PushChannel) async throws {
    for registration in try await registrations(channel: channel).all() {
      guard let id = registration.registrationID else { continue }
      try await delete(registration: id)
    }
  }

  private static func condition(_ etag: String?) -> String { etag.map { "\"\($0)\"" } ?? "*" }

  private func id(of registration: Registration) throws -> String {
    guard let id = registration.registrationID, !id.isEmpty else {
      throw NotificationHubError(
        kind: .badRequest, detail: "the registration has no id; set 'registrationID'")
    }
    return id
  }

  private func written(
    _ method: String, _ path: [String], _ registration: Registration, ifMatch: String?
  ) async throws -> Registration {
    var headers = [WireName.contentType: WireName.atomEntry]
    headers[WireName.ifMatch] = ifMatch
    let reply = try await perform(
      method, path, headers: headers, body: Data(registration.requestXML.utf8))
    return try reply.read { (body) throws(WireFormatError) in try Registration.decode(body) }
  }

  private func list(
    _ path: [String], filter: String?, _ pageSize: Int?
  ) -> PagedList<Registration> {
    var items: [URLQueryItem] = []
    if let filter { items.append(URLQueryItem(name: WireName.filter, value: filter)) }
    if let pageSize { items.append(URLQueryItem(name: WireName.top, value: String(pageSize))) }
    return PagedList(items: items) { items in
      let reply = try await perform("GET", path, query: items)
      return try (
        reply.read { (body) throws(WireFormatError) in try Registration.decodeFeed(body) },
        reply.header(WireName.continuationToken)
      )
    }
  }
}
