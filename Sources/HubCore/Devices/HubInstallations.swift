import Foundation
package import NotificationHubs

/// Installations (docs/protocol/rest.md, section 4).
package struct HubInstallations: HubSubject {
  package let service: HubService

  /// Creates or replaces an installation (docs/protocol/rest.md, section 4.2).
  ///
  /// - Parameters:
  ///   - id: The id from the path, decoded.
  ///   - body: The request's JSON.
  /// - Throws: 400 with a line for each fault; nothing is written in this case.
  package func put(
    hub: Hub, id: String, body: [UInt8]
  ) async throws(HubFailure) {
    let now = clock.now()
    let request = confirmableRequest(body, hub: hub)
    do {
      if let request,
        try await store.confirmInstallation(id, request: request, hub: hub.id, at: now)
      {
        return
      }
      try await write(body, request, hub: hub, id: id, at: now)
    } catch { throw HubFailure(answering: error) }
  }

  // A function of its own, and its errors answered by its caller: `answering` has a closure, which
  // could not consume the installation.
  private func write(
    _ body: [UInt8], _ request: InstallationRequest?, hub: Hub, id: String, at now: Date
  ) async throws {
    let (installation, drafts) = try await reading(body) {
      try read(body, hub: hub, id: id, at: now)
    }
    try await store.putInstallation(
      consume installation, registrations: consume drafts, request: request, hub: hub.id, at: now)
  }

  /// The request whose repeat changes nothing; `nil` where each repeat sets a new time to live.
  private func confirmableRequest(_ body: [UInt8], hub: Hub) -> InstallationRequest? {
    guard hub.registrationTTL == nil else { return nil }
    return InstallationRequest(body: body, rules: limits.installationRules)
  }

  // Kept out of the asynchronous function, whose local values take memory of every task.
  @inline(never)
  private func read(
    _ body: [UInt8], hub: Hub, id: String, at now: Date
  ) throws(HubFailure) -> (Installation, [RegistrationDraft]) {
    let installation = try checked(hub: hub, at: now) { () throws(WireFormatError) in
      var installation = try Installation.decode(body, id: id)
      installation.forgetExpiry()
      return installation
    }
    try limits.checkRetired(installation.platform)
    return (installation, installation.registrationDrafts)
  }

  /// - Throws: 404.
  package func get(hub: Hub, id: String) async throws(HubFailure) -> Installation {
    let found = try await answering { try await store.installation(id, hub: hub.id) }
    guard let found, !found.isOver(at: clock.now()) else { throw .noInstallation }
    return found
  }

  /// Changes an installation by a list of operations, all or none (docs/protocol/rest.md,
  /// section 4.4).
  /// - Throws: 400 for operations that are malformed or whose result is not allowed, 404.
  package func patch(
    hub: Hub, id: String, body: [UInt8]
  ) async throws(HubFailure) {
    let patch = try await reading(body) {
      do throws(WireFormatError) { return try InstallationPatch.decode(body) } catch {
        throw HubFailure(status: 400, message: error.message)
      }
    }
    let now = clock.now()
    let wasThere = try await answering {
      try await store.updateInstallation(id, hub: hub.id, at: now) { present in
        guard !present.isOver(at: now) else { throw HubFailure.noInstallation }
        // An installation that already exceeds the limit may stay at its number.
        let tagLimit = present.tagCount(above: limits.tagsPerInstallation)
        let changed = try checked(
          hub: hub, at: now, tagLimit: tagLimit
        ) { () throws(WireFormatError) in
          try patch.changing(present)
        }
        try limits.checkRetired(changed.platform)
        return (changed, changed.registrationDrafts)
      }
    }
    guard wasThere else { throw .noInstallation }
  }

  /// Forgets an installation; succeeds even if there is none (docs/protocol/rest.md, section 4.5).
  package func delete(hub: Hub, id: String) async throws(HubFailure) {
    _ = try await answering { try await store.deleteInstallation(id, hub: hub.id) }
  }

  /// The next installations of a list. The store searches for rare ones in slices; the page is
  /// filled from several, within the limit of one request.
  ///
  /// - Parameters:
  ///   - filter: Its ``InstallationFilter/asOf`` is set here.
  ///   - after: The ``InstallationPage/next`` of the page before.
  /// - Throws: 400 for a tag or a user's id that none can have.
  package func list(
    hub: Hub, _ filter: InstallationFilter, after: InstallationPosition?, limit: Int
  ) async throws(HubFailure) -> InstallationPage {
    if let tag = filter.tag, !tag.isValid {
      throw HubFailure(status: 400, message: Tag.invalid(tag.rawValue).message)
    }
    if let userID = filter.userID, !Tag.user(userID).isValid {
      throw HubFailure(
        status: 400, message: "The user's id to look for is none: \(Installation.identifierRule)")
    }
    var filter = filter
    filter.asOf = clock.now()
    return try await answering { [filter] in
      var page = InstallationPage(next: after)
      for _ in 0..<HubService.stretches {
        // Nobody waits for what a client that has left would find.
        try Task.checkCancellation()
        let more = try await store.installations(
          filter, hub: hub.id, after: page.next, limit: limit - page.installations.count)
        for installation in more.installations { page.append(installation) }
        page.next = more.next
        guard page.next != nil, !page.isFull(limit) else { break }
      }
      return page
    }
  }

  /// The installation in its stored form, or an error with every fault.
  private func checked(
    hub: Hub, at now: Date, tagLimit: Int? = nil, _ make: () throws(WireFormatError) -> Installation
  ) throws(HubFailure) -> Installation {
    do throws(WireFormatError) {
      var (installation, faults) = try make().normalized()
      faults += installation.hubFaults(tagLimit: tagLimit ?? limits.tagsPerInstallation)
      if !faults.isEmpty { throw .installation(faults) }
      if let ttl = hub.registrationTTL {
        let latest = now.addingTimeInterval(ttl)
        installation.expirationTime = min(installation.expirationTime ?? latest, latest)
      }
      return installation
    } catch {
      throw HubFailure(status: 400, message: error.message)
    }
  }
}

extension HubService {
  package var installations: HubInstallations { HubInstallations(service: self) }
}

extension Installation {
  /// Whether it has expired, so that the hub no longer knows it.
  fileprivate func isOver(at now: Date) -> Bool { expirationTime.map { $0 <= now } ?? false }
}

extension HubFailure {
  /// 404: there is no such installation.
  package static let noInstallation = HubFailure(status: 404, message: "Installation not found")
}
