import Foundation

/// The working files of one job.
struct JobWorkspace {
  private let folder: URL
  var input: String { folder.appending(path: "Input.txt").path }
  var output: String { folder.appending(path: "Output.txt").path }
  var failed: String { folder.appending(path: "Failed.txt").path }

  /// - Parameter job: The id; made by the server.
  init(_ workspace: URL, job: String) { folder = workspace.appending(path: job) }

  func make() throws(JobFault) {
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw JobFault("the working directory of the job cannot be made")
    }
  }

  func remove() { try? FileManager.default.removeItem(at: folder) }

  /// Removes what jobs that are over have left.
  static func clear(_ workspace: URL, keeping jobs: Set<String>) {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: workspace.path)) ?? []
    for name in names where !jobs.contains(name) { JobWorkspace(workspace, job: name).remove() }
  }
}
