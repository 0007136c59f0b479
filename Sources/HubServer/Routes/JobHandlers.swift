import HTTPServer
import HubCore
import NotificationHubs

/// Imports and exports of registrations (docs/protocol/rest.md, section 7).
struct JobHandlers: RouteHandlers {
  let api: HubAPI

  func submit(_ call: HubCall) async throws -> HTTPResponse {
    let job = try await service.submitJob(hub: call.hub, body: call.request.body)
    call.activity?.refine(object: job.id)
    let address = api.address(of: call.request)
    var response = call.replies.atom(
      WireName.atomEntry,
      NotificationHubJob(job).entryXML(address: address, now: service.clock.now()),
      status: .created)
    response.headers.add(WireName.location, address.appending(job.id).text)
    return response
  }

  func get(_ call: HubCall) async throws -> HTTPResponse {
    let job = try await service.job(hub: call.hub, id: call.requiredID())
    let address = api.address(of: call.request)
    var response = call.replies.atom(
      WireName.atomEntry,
      NotificationHubJob(job).entryXML(address: address, now: service.clock.now()))
    // With the id twice, as recorded.
    response.headers.add(WireName.contentLocation, address.appending(job.id).text)
    return response
  }

  func list(_ call: HubCall) async throws -> HTTPResponse {
    let jobs = try await service.jobs(hub: call.hub).map { NotificationHubJob($0) }
    let feed = NotificationHubJob.feedXML(
      jobs, address: api.address(of: call.request), now: service.clock.now())
    return call.replies.atom(WireName.atomFeed, feed)
  }
}
