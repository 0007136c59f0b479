import Foundation
import NotificationHubs

/// What a send would do, in lines of at most 80 columns.
struct SendPreviewText {
  private let preview: SendPreview
  init(_ preview: SendPreview) { self.preview = preview }

  var lines: [String] {
    var lines = [
      preview.devices == 1 ? "it would go to 1 device" : "it would go to \(preview.devices) devices"
    ]
    if preview.examined < preview.devices {
      lines[0] += "; what follows is of the first \(preview.examined)"
    }
    for share in preview.shares {
      let duplicates =
        share.duplicates > 0 ? ", \(share.duplicates) of them duplicates that are left out" : ""
      lines.append("  \(share.platform.rawValue.padded(to: 8)) \(share.devices)\(duplicates)")
    }
    if let seconds = preview.estimatedSeconds, let rate = preview.devicesPerSecond {
      lines.append(
        String(
          format: "in about %.1f s, at the %.0f devices/s of the last large send", seconds, rate))
    }
    for problem in preview.problems {
      lines.append("")
      let mark = problem.isFatal ? "✗ would fail" : "! look at this"
      lines += ExplanationText.wrap(
        "\(mark): \(problem.devices) on \(problem.platform.rawValue): \(problem.text)", first: "",
        rest: "  ")
      if let template = problem.template {
        lines += ExplanationText.wrap("template \(template)", first: "    ", rest: "    ")
      }
    }
    let shown = preview.samples.prefix(6)
    for sample in shown {
      lines.append("")
      let size = sample.rendering.limit.map { " of \($0)" } ?? ""
      lines.append(
        "\(sample.platform.rawValue) \(sample.registrationID ?? "the handle named"), "
          + "\(sample.rendering.bytes)\(size) bytes:")
      lines += ExplanationText.wrap(sample.rendering.payload, first: "  ", rest: "  ")
    }
    if shown.count < preview.samples.count {
      lines += ["", "and \(preview.samples.count - shown.count) more; --json has them all"]
    }
    lines += ["", "nothing was sent"]
    return lines
  }
}
