"""Federated algorithms, one per file; families that share code are folders.

An algorithm trains whatever objective it is given, unless its point is a loss. A file
has a configuration and a function with the name of the method, which returns a server
state and phases (`federated.phases`); `federated.processes.build` makes a process of
them.

  method                 file                 paper
  FedAvg, FedProx        fedavg               McMahan et al. 2017; Li et al. 2020
  FedBN                  fedbn                Li et al. 2021
  Fed-BYOL, Fed-MoCo     fed_ssl              Zhuang et al. 2022, section 3
  FedEMA                 fedema               Zhuang et al. 2022, section 4
  FedU                   fedu                 Zhuang et al. 2021
  FedEMA and FedU        framework            their framework
  FedCA                  fedca                Zhang et al. 2023
  FeatARC                featarc              Wang et al. 2023 (Dec-SSL), section 5
  SCAFFOLD               scaffold             Karimireddy et al. 2020
  L-DAWA                 l_dawa               Rehman et al. 2023
  without a server       decentralized        Wang et al. 2023 (Dec-SSL), section 6.1
  DCCO                   dcco                 Vemulapalli et al. 2022
  FedSC                  fedsc                Jing et al. 2024
  Per-SSFL               per_ssfl             He et al. 2021
  BiLevel-SSFL           bilevel_ssfl         He et al. 2021, after Ditto
  MAML-SSFL              maml_ssfl            He et al. 2021, after perFedAvg
  LA-SSFL                la_ssfl              He et al. 2021: a step before evaluation
  FedSup                 fedsup               Gill 2023
  FedRGD                 fedrgd               Zhang et al. 2021
  FedMatch               fedmatch             Jeong et al. 2021
  fine-tuned at server   server_finetuned     Gill 2023, Algorithm 1
  labels alone           labelled_only        the lower bound, without clients
  linear probe           federated_linear     He et al. 2021: a classifier by FedAvg
  one-round heads        one_round            Guan et al. 2025: LDA and ridge from sums
  centralized            centralized          one step a round on all examples
  centralized training   centralized_training epochs of one client that has all data

Global-SSFL is FedAvg of SimSiam.
"""
