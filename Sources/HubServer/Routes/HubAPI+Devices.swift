import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Wire

/// Installations (docs/protocol/rest.md, section 4), with Belfry's extensions
/// (`docs/extensions.md`): their list, a search by handle, the size of an audience, the erasure of
/// a user, removed devices.
extension HubAPI {
  func putInstallation(_ call: HubCall) async throws -> HTTPResponse {
    try await service.putInstallation(
      hub: call.hub, id: call.requiredID(), body: call.request.body)
    return call.replies.empty(.ok)
  }

  func getInstallation(_ call: HubCall) async throws -> HTTPResponse {
    let installation = try await service.installation(hub: call.hub, id: call.requiredID())
    return call.replies.document(.ok, installation.hubJSON)
  }

  func patchInstallation(_ call: HubCall) async throws -> HTTPResponse {
    try await service.patchInstallation(
      hub: call.hub, id: call.requiredID(), body: call.request.body)
    return call.replies.empty(.ok)
  }

  func deleteInstallation(_ call: HubCall) async throws -> HTTPResponse {
    try await service.deleteInstallation(hub: call.hub, id: call.requiredID())
    return call.replies.empty(.noContent)
  }

  func listInstallations(_ call: HubCall) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.installations(
      hub: call.hub, try filter(in: target), after: try installation(in: target),
      limit: try pageSize(in: target))
    var response = call.replies.json(InstallationList.json(page.installations))
    if let next = page.next {
      response.headers.add(
        WireName.continuationToken, ContinuationToken.encode(Array(String(next).utf8)))
    }
    return response
  }

  private func filter(in target: HTTPTarget) throws(HubFailure) -> InstallationFilter {
    typealias Parameter = InstallationList.Parameter
    var filter = InstallationFilter(asOf: service.clock.now())
    if let item = target.queryItem(Parameter.tag) {
      filter.tag = Tag(rawValue: (item.value ?? "").trimmingBlanks)
    }
    filter.userID = target.queryItem(Parameter.user)?.value
    if let item = target.queryItem(Parameter.platform) {
      filter.platform = try platform(item.value)
    }
    if let item = target.queryItem(Parameter.expired) {
      switch item.value?.lowercased() {
      case "true": filter.isExpired = true
      case "false": filter.isExpired = false
      default:
        throw HubFailure(status: 400, message: "The query parameter expired is true or false")
      }
    }
    return filter
  }

  /// The position at which a page starts.
  private func installation(in target: HTTPTarget) throws(HubFailure) -> InstallationPosition? {
    guard let bytes = try continuation(in: target) else { return nil }
    guard let number = InstallationPosition(String(decoding: bytes, as: UTF8.self)), number > 0
    else { throw .invalidContinuation }
    return number
  }

  /// The handle is sent in the body, because URLs are logged along the way.
  func searchDevices(_ call: HubCall) async throws -> HTTPResponse {
    let handle: String
    do { handle = try DeviceSearch.handle(in: call.request.body) } catch {
      throw HubFailure(status: 400, message: error.message)
    }
    let found = try await service.devices(hub: call.hub, handle: handle)
    let search = DeviceSearch(
      installations: found.installations,
      registrations: found.registrations.map { item in
        DeviceSearch.registration(
          Registration(item.stored), id: item.stored.id, installationID: item.installationID,
          endpoint: item.stored.draft.platform == .apns ? found.apnsHosts[item.environment] : nil)
      }, hasMore: found.hasMore)
    return call.replies.json(search.json)
  }

  func countAudience(_ call: HubCall) async throws -> HTTPResponse {
    let tags = call.request.target.queryItem(WireName.audienceTags)
    guard tags?.rawValue == nil || tags?.value != nil else {
      throw HubFailure(
        status: 400, message: "The query parameter tags is not valid percent-encoded text")
    }
    // As in a send's header, a present but empty expression must not match everyone.
    let count = try await service.audienceCount(
      hub: call.hub, tags: tags.map { $0.value ?? "" })
    return call.replies.json(count.json)
  }

  func eraseUser(_ call: HubCall) async throws -> HTTPResponse {
    // The id of the erased user is not recorded again.
    call.activity?.hideObject()
    return call.replies.json(
      try await service.eraseUser(hub: call.hub, userID: call.requiredID()).json)
  }

  func listRemovals(_ call: HubCall) async throws -> HTTPResponse {
    let wave = try wave(in: call.request.target)
    return call.replies.json(try await service.removedDevices(hub: call.hub, wave).json)
  }

  func restoreRemovals(_ call: HubCall) async throws -> HTTPResponse {
    let wave = try wave(in: call.request.target)
    return call.replies.json(try await service.restoreDevices(hub: call.hub, wave).json)
  }

  private func wave(in target: HTTPTarget) throws(HubFailure) -> RemovalWave {
    var wave = RemovalWave()
    if let item = target.queryItem("platform") { wave.platform = try platform(item.value) }
    if let since = try time("since", in: target) { wave.since = since }
    return wave
  }
}

/// Registrations (docs/protocol/rest.md, section 3).
extension HubAPI {
  func createRegistration(_ call: HubCall) async throws -> HTTPResponse {
    let made = try await service.createRegistration(hub: call.hub, body: call.request.body)
    let address = address(of: call.request).replacingLast(with: "registrations")
      .appending(made.id)
    var response = entry(made, at: address, form: .written, call)
    response.headers.add(WireName.contentLocation, address.text)
    return response
  }

  func createRegistrationID(_ call: HubCall) async throws -> HTTPResponse {
    let id = try await service.reserveRegistrationID(hub: call.hub)
    // The path keeps the request's spelling: .NET asks for "registrationids" and a PHP client for
    // "registrationIDs", and each takes the last segment only after its own spelling.
    let address = address(of: call.request).appending(id)
    var response = call.replies.bare(.created)
    response.headers.add(WireName.location, address.text)
    return response
  }

  func putRegistration(_ call: HubCall) async throws -> HTTPResponse {
    let stored = try await service.putRegistration(
      hub: call.hub, id: call.requiredID(), condition: condition(of: call.request),
      body: call.request.body)
    return entry(stored, at: address(of: call.request), form: .written, call)
  }

  func getRegistration(_ call: HubCall) async throws -> HTTPResponse {
    let stored = try await service.registration(hub: call.hub, id: call.requiredID())
    return entry(stored, at: address(of: call.request), form: .read, call)
  }

  func deleteRegistration(_ call: HubCall) async throws -> HTTPResponse {
    let condition = try condition(of: call.request)
    guard condition != .none else { throw HubFailure(status: 412, message: ETagCondition.fault) }
    try await service.deleteRegistration(
      hub: call.hub, id: call.requiredID(), condition: condition)
    return call.replies.bare(.ok)
  }

  func listRegistrations(_ call: HubCall) async throws -> HTTPResponse {
    guard let filter = call.request.target.queryItem(WireName.filter) else {
      return try await list(.all, call)
    }
    do {
      return try await list(.device(RegistrationFilter(parsing: filter.value ?? "")), call)
    } catch let error as WireFormatError {
      throw HubFailure(status: 400, message: error.message)
    }
  }

  func listTaggedRegistrations(_ call: HubCall) async throws -> HTTPResponse {
    try await list(.tag(Tag(rawValue: call.requiredID().trimmingBlanks)), call)
  }

  // MARK: Parts

  private func condition(of request: HTTPRequest) throws(HubFailure) -> ETagCondition {
    do { return try ETagCondition(ifMatch: request.headers[WireName.ifMatch]) } catch {
      throw HubFailure(status: 412, message: error.message)
    }
  }

  private func entry(
    _ stored: StoredRegistration, at address: AtomAddress, form: Registration.Form, _ call: HubCall
  ) -> HTTPResponse {
    let registration = Registration(stored)
    var response = call.replies.atom(
      WireName.atomEntry,
      registration.entryXML(address: address, form: form, now: call.replies.now()))
    response.headers.add(WireName.etag, ETagCondition.weak(String(stored.etag)))
    return response
  }

  private func list(_ query: RegistrationQuery, _ call: HubCall) async throws -> HTTPResponse {
    let target = call.request.target
    let page = try await service.registrations(
      hub: call.hub, query, after: try position(in: target), limit: try pageSize(in: target))
    var token: String?
    if page.hasMore, let last = page.registrations.last {
      token = withUnsafeBytes(of: last.number.bigEndian) { ContinuationToken.encode($0) }
    }
    let feed = Registration.feedXML(
      page.registrations.map(Registration.init), address: address(of: call.request),
      next: token, now: call.replies.now())
    var response = call.replies.atom(WireName.atomFeed, feed)
    if let token { response.headers.add(WireName.continuationToken, token) }
    return response
  }
}

/// Imports and exports of registrations (docs/protocol/rest.md, section 7).
extension HubAPI {
  func submitJob(_ call: HubCall) async throws -> HTTPResponse {
    let job = try await service.submitJob(hub: call.hub, body: call.request.body)
    call.activity?.refine(object: job.id)
    let address = address(of: call.request)
    var response = call.replies.atom(
      WireName.atomEntry,
      NotificationHubJob(job).entryXML(address: address, now: service.clock.now()),
      status: .created)
    response.headers.add(WireName.location, address.appending(job.id).text)
    return response
  }

  func getJob(_ call: HubCall) async throws -> HTTPResponse {
    let job = try await service.job(hub: call.hub, id: call.requiredID())
    let address = address(of: call.request)
    var response = call.replies.atom(
      WireName.atomEntry,
      NotificationHubJob(job).entryXML(address: address, now: service.clock.now()))
    // With the id twice, as recorded.
    response.headers.add(WireName.contentLocation, address.appending(job.id).text)
    return response
  }

  func listJobs(_ call: HubCall) async throws -> HTTPResponse {
    let jobs = try await service.jobs(hub: call.hub).map { NotificationHubJob($0) }
    let feed = NotificationHubJob.feedXML(
      jobs, address: address(of: call.request), now: service.clock.now())
    return call.replies.atom(WireName.atomFeed, feed)
  }
}
