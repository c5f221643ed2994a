"""Why verdicts are not the papers', where the runs or the authors' code tell.

A cause is of what was run: it holds for its budget alone. Of a claim that is not seen
and stands nowhere here it is not known why.
"""

from collections.abc import Mapping

_OF_LABELS = (
  'Digits are easily learnt from labels: supervised training is ahead where the '
  'classes are even, too'
)
_OF_TEACHERS = (
  'Its clients learn from the teacher alone, which is what the server learns from its '
  'labels: FedSup is level with these. SimCLR, SimSiam and BYOL learn from the images '
  'first. [labels_at_server.md](labels_at_server.md) follows a student against its '
  'teacher.'
)
_NOT_PAST_THE_TEACHER = (
  'Fine-tuned, FedSup is level with the labels alone, whichever of its losses it has: '
  'its clients learn from the teacher alone, which is what the server learns from its '
  'labels. [labels_at_server.md](labels_at_server.md) follows a student against its '
  'teacher.'
)
_NO_RANGE_OF_LABELS = (
  'In 60 rounds of five clients even all labels on the clients add five to eight '
  'points to those of the server, where the thesis has 23.'
)
_OF_CLIENTS = (
  'LA, BiLevel and the global encoder are within two points of each other, and seeds '
  'differ by three to five: of some 287 images a client, evaluated by a tenth of their '
  'labels, they cannot be told apart. Only Per can.'
)

_DIGITS = {
  'dcco-fedavg-cco': 'Four images of different classes have correlations that are '
  'worth learning on digits: FedAvg with CCO comes near CCO that is trained centrally. '
  'Of one class they have not, and there DCCO is ahead by about what the claim asks '
  'for.',
  'dcco-nt-xent': 'It is the loss, not the federation: with IID clients, NT-Xent is '
  'level with CCO that is trained centrally, or ahead of it. Of clients of one class, '
  'where all of its negatives are alike, it is not ahead of DCCO.',
  'dcco-supervised': 'Digits are easily learnt from labels: CCO that is trained '
  'centrally is hardly ahead of training from them (dcco-nt-xent has its figure).',
  'dcco-trend-one-class': '64 clients of one class hold all ten classes, as 256 do: '
  'between them nothing is to be gained. 16 hold 8.1 in the mean, and there it shows.',
  'ssfl-personal-linear': _OF_CLIENTS,
  'ssfl-personal-knn': _OF_CLIENTS,
  'ssfl-batch': 'Clients have some 287 images: batches of 256 are one step an epoch, '
  '75 in all, where batches of 32 are 600 and more. An eighth of the steps at four '
  'times the rate learns less.',
  'fedema-predictor': 'Little collapses in so few rounds: on average all are above '
  'the random encoder.',
  'fedema-stop-gradient': 'Here the target is trained where its gradient is not '
  "stopped. In the authors' code (EasyFL, applications/fedssl/client.py, "
  'load_optimizer) the optimizer of Fed-BYOL has the online networks alone, so that '
  "its ablation changes no more than a client's first round, in which both networks "
  'are one.',
  'dec-ssl-alpha': f'{_OF_LABELS} (alpha = 5), and Dec-SLRep has little to lose.',
  'dec-ssl-participation': 'With 20 clients of 71 images the classifier of Dec-SL '
  'fails with all of them, too, and has little to lose.',
  'dec-ssl-representation': f'{_OF_LABELS} (dec-ssl-alpha).',
  'fedsup-finetuned': 'Labels alone, fine-tuned, are within eight points of all '
  f'labels. {_OF_TEACHERS}',
  'fedsup-linear': _OF_TEACHERS,
  'fedsup-feature-maps': _OF_TEACHERS,
  'fedsup-consistency': _OF_TEACHERS,
}
_CIFAR = {
  'dcco-fedavg-cco': 'With clients of one class FedAvg with CCO is as far behind as '
  'the claim asks for; with IID clients it falls short of that by less than its error.',
  'dcco-nt-xent': 'With clients of one class DCCO is ahead, and the more so in longer '
  'runs (dcco-nt-xent-longer). With IID clients it is not, in five passes over the '
  'images, where the paper makes a thousand: NT-Xent is level with CCO that is trained '
  'centrally. The projector is not why: of clients of four IID images (seed 0, else '
  'the same command) DCCO has 34.1 with its own (no --projector) and 32.7 with the '
  "paper's (--projector=1024,1024,1024), NT-Xent 34.6 with its own.",
  'dcco-nt-xent-longer': 'With clients of one class DCCO gains more by the longer '
  'runs, and is ahead; with IID clients they are level after 26 passes over the '
  'images.',
  'dcco-supervised': 'Five passes over the images, where the paper makes a thousand: '
  'with five times as many (dcco-nt-xent-longer) DCCO gains about six points, and is '
  'still behind. [results.md](results.md) has an encoder twice as wide on 32 x 32 '
  'pixels: it is ahead with a hundredth of the labels, and, fine-tuned, with a tenth.',
  'dcco-trend-one-class': '32 clients of one class hold 9.7 of the ten classes in the '
  "mean: the split takes next to nothing away. Of the paper's hundred (CIFAR-100) they "
  'hold 27.5.',
  'dcco-cohort': 'Two thirds of the lesions are of one class, and in 300 rounds no '
  'encoder is more than about three points above an untrained one.',
  'dec-ssl-epochs': 'With one epoch the classifier of Dec-SL has failed at alpha = '
  '0.02, too (18 %, where chance is 10), and has little to lose. Dec-SLRep loses more '
  'than Dec-SSL by a little less than two standard errors.',
  'fedsup-finetuned': f'{_NO_RANGE_OF_LABELS} What can be told: FedSup is level with '
  'the labels alone; SimCLR, SimSiam, BYOL and FixMatch are one to two points ahead.',
  'fedsup-linear': f'{_NO_RANGE_OF_LABELS} What can be told: by its features FedSup is '
  'ahead of the labels alone, and clearly behind SimCLR alone.',
  'fedsup-cifar100-finetuned': 'In 60 rounds of five clients even all labels on the '
  'clients add two points to those of the server, where the thesis has eleven. What '
  'can be told: FedSup is level with the labels alone and with FixMatch; SimCLR, '
  'SimSiam and BYOL are one to two points ahead.',
  'fedsup-cifar100-linear': 'In 60 rounds of five clients all labels on the clients '
  'add 5.6 points to those of the server, where the thesis has eleven. What can be '
  'told: BYOL is ahead of FedSup, as in the thesis; so are SimCLR and SimSiam.',
  'fedsup-feature-maps': _NOT_PAST_THE_TEACHER,
  'fedsup-consistency': _NOT_PAST_THE_TEACHER,
  'fedsup-alpha': 'FedSup is level with the labels alone with IID clients, too '
  '(fedsup-feature-maps): there is nothing for uneven ones to take away.',
  'dec-ssl-transfer-cifar10': 'With alpha = 0.02 each of the five clients holds 20 of '
  "CIFAR-100's classes (`python -m binaries.partition "
  '--task=cifar100 --partition=dirichlet:alpha=0.02,examples=10000`), from which '
  'Dec-SLRep learns as well as from all; of CIFAR-10, where it loses '
  '(dec-ssl-transfer-cifar100), it holds two.',
  'dec-ssl-participation': 'With 20 clients of 250 images the classifier of Dec-SL is '
  'at chance with all of them, too, and has nothing to lose.',
}
# Of a budget, by the claim.
BY_BUDGET: Mapping[str, Mapping[str, str]] = {'digits': _DIGITS, 'cifar': _CIFAR}
