/// Runs jobs, off the path of the requests that submit them.
package protocol JobScheduler: Sendable {
  /// Takes a job that the store keeps; it runs when those of its hub before it are done.
  func submit(_ job: HubJob) async
}
