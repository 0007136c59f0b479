public import Foundation
import Wire

extension NotificationHubClient {
  /// Creates the installation, or replaces the one with the same id. Idempotent.
  public func createOrReplace(_ installation: Installation) async throws {
    _ = try await perform(
      .putInstallation, installation.installationID,
      headers: [WireName.contentType: WireName.json], body: installation.jsonData)
  }

  /// Reads an installation.
  ///
  /// - Throws: ``NotificationHubError`` of kind `notFound` if there is no such installation.
  public func installation(_ installationID: String) async throws -> Installation {
    let reply = try await perform(.getInstallation, installationID)
    return try reply.read { (body) throws(WireFormatError) in try Installation(jsonData: body) }
  }

  /// Changes parts of an installation. Either all operations apply, or none.
  public func patch(
    installation installationID: String, _ patch: InstallationPatch
  ) async throws {
    _ = try await perform(
      .patchInstallation, installationID,
      headers: [WireName.contentType: "application/json-patch+json"], body: patch.jsonData)
  }

  /// Deletes an installation. Idempotent.
  public func delete(installation installationID: String) async throws {
    _ = try await perform(.deleteInstallation, installationID)
  }

  /// The hub's installations, loaded page by page. Belfry only: Azure has no such list.
  ///
  /// ```swift
  /// for try await installation in client.installations(.init(user: "bob")) { … }
  /// ```
  public func installations(
    _ query: InstallationQuery = InstallationQuery()
  ) -> PagedList<Installation> {
    PagedList(items: query.items) { items in
      let reply = try await perform(.listInstallations, query: items)
      return try (
        reply.read { (body) throws(WireFormatError) in try InstallationList.decode(body) },
        reply.header(WireName.continuationToken)
      )
    }
  }

  /// Finds the devices that a handle belongs to, on any platform, for example the token in a bug
  /// report or in a push service's console. Belfry only; needs the Manage right.
  ///
  /// - Parameter handle: The whole token, registration id or channel URI; for a browser, the
  ///   endpoint or the subscription as JSON.
  public func devices(withHandle handle: String) async throws -> DeviceSearch {
    let reply = try await perform(
      .searchDevices, headers: [WireName.contentType: WireName.json],
      body: Data(DeviceSearch.request(handle)))
    return try reply.read { (body) throws(WireFormatError) in try DeviceSearch(json: body) }
  }

  /// Erases everything that a hub stores about a user: installations, schedules for that user
  /// alone, stored payloads and outcomes of single devices. Belfry only.
  @discardableResult
  public func erase(user userID: String) async throws -> UserErasure {
    let reply = try await perform(.eraseUser, userID)
    return try reply.read { (body) throws(WireFormatError) in try UserErasure(json: body) }
  }
}

extension NotificationHubClient {
  /// Returns the registrations that the hub removed because a push service reported their handles
  /// dead, grouped by hour. Belfry only.
  /// - Parameters:
  ///   - platform: `nil` for every platform.
  ///   - since: `nil` for all that can be restored.
  public func removedDevices(
    on platform: PushPlatform? = nil, since: Date? = nil
  ) async throws -> RemovedDevices {
    let reply = try await perform(.listRemovals, query: Self.wave(platform, since))
    return try reply.read { (body) throws(WireFormatError) in try RemovedDevices(json: body) }
  }

  /// Restores removed registrations, unless their app has registered again in the meantime. Belfry
  /// only.
  ///
  /// ```swift
  /// try await client.restoreDevices(on: .apns, since: wave)
  /// ```
  @discardableResult
  public func restoreDevices(
    on platform: PushPlatform? = nil, since: Date? = nil
  ) async throws -> DeviceRestoration {
    var total = DeviceRestoration(restored: 0, superseded: 0)
    var hasMore = true
    while hasMore {
      let reply = try await perform(
        .restoreRemovals, query: Self.wave(platform, since))
      let part = try reply.read { (body) throws(WireFormatError) in
        try DeviceRestoration(json: body)
      }
      total.restored += part.restored
      total.superseded += part.superseded
      hasMore = part.hasMore
    }
    return total
  }

  private static func wave(_ platform: PushPlatform?, _ since: Date?) -> [URLQueryItem] {
    .given([("platform", platform?.rawValue), ("since", since.map(WireDate.seconds))])
  }
}

/// The criteria for a list of installations; `nil` matches any value.
public struct InstallationQuery: Hashable, Sendable {
  /// The tag that installations must have.
  public var tag: Tag?
  /// The user id that installations must have.
  public var user: String?
  /// A part of the id, of the user's id or of a tag, in any letter case.
  public var search: String?
  /// The platform of the installations.
  public var platform: PushPlatform?
  /// Whether the push service has reported the channel dead.
  public var expired: Bool?
  /// The maximum number of installations per page, 1 to 100.
  public var pageSize: Int?

  /// Creates a query; without arguments it matches every installation.
  public init(
    tag: Tag? = nil, user: String? = nil, search: String? = nil, platform: PushPlatform? = nil,
    expired: Bool? = nil, pageSize: Int? = nil
  ) {
    self.search = search
    self.tag = tag
    self.user = user
    self.platform = platform
    self.expired = expired
    self.pageSize = pageSize
  }

  var items: [URLQueryItem] {
    typealias Parameter = InstallationList.Parameter
    return .given([
      (Parameter.tag, tag?.rawValue), (Parameter.user, user),
      (Parameter.search, search),
      (Parameter.platform, platform?.rawValue), (Parameter.expired, expired.map { "\($0)" }),
      (WireName.top, pageSize.map(String.init)),
    ])
  }
}

extension NotificationHubClient {
  /// Creates a registration, even if the device already has one.
  /// - Returns: The registration as stored by the hub, with its id and etag.
  public func create(_ registration: Registration) async throws -> Registration {
    try await written(.createRegistration, registration, ifMatch: nil)
  }

  /// Reserves an id for ``createOrUpdate(_:)``, so that a device can store it and write its
  /// registration repeatedly.
  public func createRegistrationID() async throws -> String {
    let reply = try await perform(.createRegistrationID)
    guard let location = reply.header(WireName.location).flatMap({ URL(string: $0) }),
      !location.lastPathComponent.isEmpty, location.lastPathComponent != "/"
    else {
      throw NotificationHubError(
        kind: .unexpectedReply, status: reply.status, detail: "the reply names no registration id",
        trackingID: reply.header(WireName.trackingID))
    }
    return location.lastPathComponent
  }

  /// Writes the registration under its `registrationID`, whether it exists or not.
  public func createOrUpdate(_ registration: Registration) async throws -> Registration {
    try await written(
      .putRegistration, registration, id: try id(of: registration), ifMatch: nil)
  }

  /// Writes the registration under its `registrationID` if it exists and its `etag` still matches;
  /// an etag of `nil` matches any.
  ///
  /// - Throws: ``NotificationHubError`` of kind `preconditionFailed` if it has changed.
  public func update(_ registration: Registration) async throws -> Registration {
    try await written(
      .putRegistration, registration, id: try id(of: registration),
      ifMatch: Self.condition(registration.etag))
  }

  /// Reads a registration.
  ///
  /// - Throws: ``NotificationHubError`` of kind `notFound` if there is no such registration.
  public func registration(_ registrationID: String) async throws -> Registration {
    let reply = try await perform(.getRegistration, registrationID)
    return try reply.read { (body) throws(WireFormatError) in try Registration.decode(body) }
  }

  /// Deletes a registration.
  /// - Parameter etag: If given, the registration is deleted only if its etag still matches.
  public func delete(registration registrationID: String, etag: String? = nil) async throws {
    _ = try await perform(
      .deleteRegistration, registrationID,
      headers: [WireName.ifMatch: Self.condition(etag)])
  }

  /// All registrations of the hub, loaded page by page.
  /// - Parameter pageSize: The maximum number of registrations per page, 1 to 100.
  public func registrations(pageSize: Int? = nil) -> PagedList<Registration> {
    list(.listRegistrations, filter: nil, pageSize)
  }

  /// The registrations with a tag, loaded page by page.
  public func registrations(tag: Tag, pageSize: Int? = nil) -> PagedList<Registration> {
    list(.listTaggedRegistrations, tag.rawValue, filter: nil, pageSize)
  }

  /// The registrations of a device, native and template, loaded page by page.
  public func registrations(
    channel: PushChannel, pageSize: Int? = nil
  ) -> PagedList<Registration> {
    list(.listRegistrations, filter: RegistrationFilter.text(channel), pageSize)
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
    _ operation: HubOperation, _ registration: Registration, id: String? = nil, ifMatch: String?
  ) async throws -> Registration {
    var headers = [WireName.contentType: WireName.atomEntry]
    headers[WireName.ifMatch] = ifMatch
    let reply = try await perform(
      operation, id, headers: headers, body: Data(registration.requestXML.utf8))
    return try reply.read { (body) throws(WireFormatError) in try Registration.decode(body) }
  }

  private func list(
    _ operation: HubOperation, _ id: String? = nil, filter: String?, _ pageSize: Int?
  ) -> PagedList<Registration> {
    let items = [URLQueryItem].given([
      (WireName.filter, filter), (WireName.top, pageSize.map(String.init)),
    ])
    return PagedList(items: items) { items in
      let reply = try await perform(operation, id, query: items)
      return try (
        reply.read { (body) throws(WireFormatError) in try Registration.decodeFeed(body) },
        reply.header(WireName.continuationToken)
      )
    }
  }
}

/// One page of a hub's installations: Belfry's reply to `GET /{hub}/installations`. The
/// continuation token is in the header `x-ms-continuationtoken`.
package enum InstallationList {
  /// The query parameters that filter the list.
  package enum Parameter {
    package static let tag = "tag"
    package static let user = "user"
    /// A part of the id, of the user's id or of a tag.
    package static let search = "search"
    /// The platform's name in an installation, such as `apns`.
    package static let platform = "platform"
    /// `true` for installations whose push channel is dead, `false` for the others.
    package static let expired = "expired"
  }

  /// `{"installations":[…]}`
  package static func json(_ page: [Installation]) -> [UInt8] {
    var out = Array(#"{"installations":["#.utf8)
    for (index, installation) in page.enumerated() {
      if index > 0 { out.append(UInt8(ascii: ",")) }
      out.append(contentsOf: installation.hubJSON)
    }
    out.append(contentsOf: "]}".utf8)
    return out
  }

  /// Decodes the reply.
  package static func decode(
    _ json: some Collection<UInt8>
  ) throws(WireFormatError) -> [Installation] {
    guard case .array(let items)? = try JSONValue.parse(json)["installations"] else {
      throw WireFormatError("The reply is no list of installations.")
    }
    var page: [Installation] = []
    page.reserveCapacity(items.count)
    for item in items { page.append(try Installation.decode(item)) }
    return page
  }
}
